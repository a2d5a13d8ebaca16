"""The changes that writes make to the counts of their sessions: variables, notes, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..statement import Param
from .pieces import named

# Changes of the counts. They run before the entries are changed.
WITHOUT = """variables = variables + %s - (SELECT COUNT(*) FROM {listed} {entries} e
                                        WHERE {OWN} AND e.kind = 1 AND {names}
                                        AND e.value IS NOT NULL),
       size_bytes = size_bytes + %s - (SELECT COALESCE(SUM(e.size_bytes), 0) FROM {listed} {entries} e
                                        WHERE {OWN} AND e.kind = 1 AND {names}), """
# The same for one variable. This is faster: it reads the row once, by its key, and sums nothing. An existing variable
# has at least one byte, so `replaced` is 0 if it does not exist.
WITHOUT_ONE = """replaced = COALESCE((SELECT e.size_bytes FROM {entries} e
                             WHERE {OWN} AND e.kind = 1 AND e.name = %s), 0),
       variables = variables + %s - (replaced > 0),
       size_bytes = size_bytes + %s - replaced, """
WITHOUT_VARIABLES = """size_bytes = size_bytes - (SELECT COALESCE(SUM(e.size_bytes), 0) FROM {entries} e
                                        WHERE {OWN} AND e.kind = 1),
       variables = 0, """
WITHOUT_NOTES = """size_bytes = size_bytes - (SELECT COALESCE(SUM(e.size_bytes), 0) FROM {entries} e
                                        WHERE {OWN} AND e.kind = 3),
       notes = 0, """
WITH_TASK = """size_bytes = size_bytes + %s - COALESCE((SELECT e.size_bytes FROM {entries} e
                                        WHERE {OWN} AND e.kind = 2 AND e.name = ''), 0), """
WITH_NOTE = "notes = notes + 1, last_note = last_note + 1, size_bytes = size_bytes + %s, "
WITH_TTL = "ttl_us = %s, "


class Change(NamedTuple):
    """The changes that a write makes to the counts of its session.

    Args:
        assignments: A template, each assignment followed by a comma.
        params: Its parameters.
        begun: The counts of a session that this write creates: variables, notes, bytes.
        pieces: The pieces of the template.
    """

    assignments: str = ""
    params: tuple[Param, ...] = ()
    begun: tuple[int, int, int] = (0, 0, 0)
    pieces: Mapping[str, str] = MappingProxyType({})


def with_variables(names: Sequence[str], as_json: str, added: int, added_bytes: int) -> Change:
    """The change of a write of variables.

    Args:
        names: The variables that are written or removed.
        as_json: Their names as a JSON array.
        added: The number of these variables after the write.
        added_bytes: Their bytes after the write.
    """
    if len(names) == 1:
        return Change(WITHOUT_ONE, (names[0], added, added_bytes), (added, 0, added_bytes))
    which = named(names, as_json)
    params = (*which.table_params, *which.params)
    return Change(WITHOUT, (added, *params, added_bytes, *params), (added, 0, added_bytes), which.pieces)


def without_variables() -> Change:
    """The change of a write that removes all variables."""
    return Change(WITHOUT_VARIABLES)


def with_task(size_bytes: int) -> Change:
    """The change of a write of the task state."""
    return Change(WITH_TASK, (size_bytes,), (0, 0, size_bytes))


def with_note(size_bytes: int) -> Change:
    """The change of a write that adds a note."""
    return Change(WITH_NOTE, (size_bytes,), (0, 1, size_bytes))


def without_notes() -> Change:
    """The change of a write that removes all notes."""
    return Change(WITHOUT_NOTES)


def with_ttl(ttl_us: int) -> Change:
    """The change of a write that gives the session another time to live."""
    return Change(WITH_TTL, (ttl_us,))
