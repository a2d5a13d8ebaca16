"""Filling a statement's text with the names of the tables, once."""

from __future__ import annotations

from collections.abc import Mapping

#: A thread that has not expired, and a row of it that an expiry did not leave behind. For aliases ``t`` and ``c``.
LIVE = "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6)) AND c.seq >= t.first_seq"

#: An unnamed row, for alias ``x``, that no state needs: neither its payload nor its text.
HOLLOW = "x.checkpoint_id IS NULL AND x.base_seq IS NULL AND x.search_text IS NULL"


class Statements:
    """Base of the classes that hold statements: fills in table names.

    Args:
        tables: The quoted names, by their role.
    """

    def __init__(self, tables: Mapping[str, str]) -> None:
        self._names = {**tables, "LIVE": LIVE, "HOLLOW": HOLLOW}
        self._texts: dict[str, str] = {}

    def _text(self, template: str) -> str:
        """The template with table names filled in; remembered."""
        text = self._texts.get(template)
        if text is None:
            text = self._texts[template] = template.format_map(self._names).strip()
        return text
