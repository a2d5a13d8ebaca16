"""SQL as a value: one statement and its parameters, in no client library's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

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
