"""SQL as a value: one statement and its parameters, in no client library's terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

#: Whether a statement that begins with this word is answered with a set of rows, which may be empty. One that begins
#: with WITH must read; one that writes can have its WITH further in.
_BRINGS_ROWS = {
    **dict.fromkeys(("SELECT", "WITH", "SHOW"), True),
    **dict.fromkeys(("INSERT", "REPLACE", "UPDATE", "DELETE", "START", "COMMIT", "ROLLBACK", "SET", "DO"), False),
    **dict.fromkeys(("CREATE", "ALTER", "DROP", "TRUNCATE"), False),
}

#: What a statement's parameter may be. Times and JSON are passed as text.
Param: TypeAlias = str | bytes | int | None


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with ``%s`` where each parameter belongs.

    Args:
        sql: A single statement without a closing semicolon. ``%s`` marks a parameter; no other ``%`` may appear.
        params: One value for each ``%s``, in order.
    """

    sql: str
    params: tuple[Param, ...] = ()

    @property
    def brings_rows(self) -> bool | None:
        """Whether its answer is a set of rows, which may be empty; None if its first word does not tell.

        By this a driver notices an answer that cannot be this statement's.
        """
        return _brings_rows(self.sql)


@lru_cache(maxsize=1024)
def _brings_rows(sql: str) -> bool | None:
    words = sql.split(None, 1)
    return _BRINGS_ROWS.get(words[0].upper()) if words else None
