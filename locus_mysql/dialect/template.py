"""Filling a statement's text with the names of the tables, once."""

from __future__ import annotations

from collections.abc import Mapping

#: A thread that has not expired, and a row of it that an expiry did not leave behind. For aliases ``t`` and ``c``.
LIVE = "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6)) AND c.seq >= t.first_seq"

#: For how long an operation that was carried out can be recognised, in seconds. No operation is repeated for as long:
#: see ``retry_deadline_s``.
KEPT_S = 900

#: A row so young that a repeated save might make it again: whoever removes it leaves its token. For the alias ``c``.
YOUNG = f"c.created_at > UTC_TIMESTAMP(6) - INTERVAL {KEPT_S} SECOND"

#: When a thread expired that has a row for a lease only.
LEASE_ONLY = "'1970-01-01'"

#: A thread on which nobody has a turn.
IDLE = "(turn_until IS NULL OR turn_until <= UTC_TIMESTAMP(6))"

#: An unnamed row that no state needs: neither its payload nor its text.
HOLLOW = "{0}.checkpoint_id IS NULL AND {0}.base_seq IS NULL AND {0}.search_text IS NULL AND {0}.pending_text IS NULL"

#: Taking the name from a row. Of its text, only what the states that follow share is kept: what is before the
#: separator.
UNNAMED = """{0}.checkpoint_id = NULL, {0}.metadata = NULL, {0}.metadata_keys = NULL, {0}.oldest_at = NULL,
       {0}.search_text = NULLIF(SUBSTRING_INDEX({0}.search_text, CHAR(30 USING utf8mb4), 1), ''),
       {0}.pending_text = NULLIF(SUBSTRING_INDEX({0}.pending_text, CHAR(30 USING utf8mb4), 1), '')"""

#: The aliases with which templates may use `HOLLOW` and `UNNAMED`, as in ``{HOLLOW[x]}``.
ALIASES = "ckx"


class Statements:
    """Base of the classes that hold statements: fills in table names.

    Args:
        tables: The quoted names, by their role.
    """

    def __init__(self, tables: Mapping[str, str]) -> None:
        self._names = {
            **tables,
            "LIVE": LIVE,
            "YOUNG": YOUNG,
            "IDLE": IDLE,
            "LEASE_ONLY": LEASE_ONLY,
            "KEPT_S": str(KEPT_S),
            "HOLLOW": {alias: HOLLOW.format(alias) for alias in ALIASES},
            "UNNAMED": {alias: UNNAMED.format(alias) for alias in ALIASES},
        }
        self._texts: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}

    def _text(self, template: str, *pieces: tuple[str, str]) -> str:
        """The template with table names filled in; remembered.

        Args:
            template: A constant.
            pieces: What stands in it for others, and these, which may have names of tables; filled in one by one.
        """
        key = (template, pieces)
        text = self._texts.get(key)
        if text is None:
            for mark, piece in pieces:
                template = template.replace(mark, piece)
            text = self._texts[key] = template.format_map(self._names).strip()
        return text
