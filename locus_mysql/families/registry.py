"""The list of all families of tables. This is the only module that names them all.

A family's module is imported when the family is first used, so a process imports only the families that it uses, and
this list may name modules of framework integrations.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from ..config import MySQLConfig
from ..errors import InvalidInput
from .family import Family

if TYPE_CHECKING:
    from .inspection.changes import OwnerChanges

#: Each family's name, with the module and the name of its object, in the order in which commands and pages list them.
_OBJECTS = {
    "agents": "locus_mysql.integrations.locus.agent_states:AGENTS",
    "graphs": "locus_mysql.families.graphs.family:GRAPHS",
    "dicts": "locus_mysql.families.checkpoints.family:DICTS",
    "current": "locus_mysql.families.checkpoints.family:CURRENT",
    "memories": "locus_mysql.families.memories.family:MEMORIES",
    "working": "locus_mysql.families.working.family:WORKING",
    "transcripts": "locus_mysql.families.transcripts.family:TRANSCRIPTS",
    "memu": "locus_mysql.integrations.memu.family:MEMU",
}

_loaded: dict[str, Family] = {}


def register_family(family: Family) -> None:
    """Add a family from outside to the list, at its end. It replaces one of the same name."""
    _OBJECTS.setdefault(family.name, "")
    _loaded[family.name] = family


def unregister_family(name: str) -> None:
    """Remove a family that `register_family` added."""
    del _loaded[name], _OBJECTS[name]


def families() -> list[Family]:
    """Return all families."""
    return [find_family(name) for name in _OBJECTS]


def find_family(name: str) -> Family:
    """Return the family of a name.

    Raises:
        InvalidInput: There is none.
    """
    if name not in _OBJECTS:
        raise InvalidInput(f"There is no family {name!r:.50} of tables. Known: {', '.join(_OBJECTS)}.")
    if name not in _loaded:
        module, _, attribute = _OBJECTS[name].partition(":")
        _loaded[name] = cast(Family, getattr(import_module(module), attribute))
    return _loaded[name]


def changes_of(family: Family, config: MySQLConfig) -> OwnerChanges:
    """Return the object that copies and deletes threads of a family.

    Raises:
        InvalidInput: The family holds no threads.
    """
    changes = family.changes(config)
    if changes is None:
        raise InvalidInput(f"Family {family.name!r} holds no threads.")
    return changes
