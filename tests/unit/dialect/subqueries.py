"""Finds the subqueries whose NULL a killed statement would take for their value: `unreported`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Strings, quoted names, hints, words with an optional qualifier, and single characters.
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|`\w+`|/\*.*?\*/|\w+(?:\.[\w`]+)?|\S", re.DOTALL)
_CLAUSES = {"SELECT", "FROM", "WHERE", "ON", "HAVING", "SET", "VALUES", "DUPLICATE", "GROUP", "ORDER", "LIMIT"}
_AGGREGATES = {"MAX", "MIN", "SUM", "COUNT"}
#: Words and signs before the parenthesis of a SELECT that is a table, or a member of a UNION, and no expression.
_BEFORE_TABLES = {"FROM", "JOIN", "STRAIGHT_JOIN", "LATERAL", "AS", "UNION", "ALL", ""}
#: The values that a statement returns or inserts. MySQL evaluates them after its last check for a kill.
_RESULTS = {"SELECT", "VALUES", "DUPLICATE"}


@dataclass
class _Block:
    """A parenthesis, or the statement.

    Args:
        parent: The block that it is in.
        before: What precedes it.
        kind: What it is: "statement", "table", "expression" or "parenthesis".
        within: The clause of the block around that it is in.
        clause: Its current clause.
        text: Its tokens so far.
    """

    parent: _Block | None
    before: str = ""
    kind: str = "statement"
    within: str = ""
    clause: str = ""
    text: list[str] = field(default_factory=list)

    def outer(self) -> Iterator[_Block]:
        block = self.parent
        while block is not None:
            yield block
            block = block.parent


def unreported(sql: str) -> list[str]:
    """Return the subqueries of a statement that are NULL, and report nothing, if it is killed before them.

    MySQL does not run a subquery in an expression once the statement is killed (KILL QUERY, max_execution_time): its
    value is NULL. It reports the kill when it has read a row, before it evaluates the values to return or to insert;
    and in UPDATE and DELETE at the end. So these are found: subqueries in values, except in an aggregate; and those in
    conditions that depend on nothing outside, as they are evaluated once, and no row may be read then. A kill makes
    NOT EXISTS true, so that rows are read.
    """
    return [" ".join(block.text)[:120] for block in _expressions(sql) if _is_unreported(block)]


def _is_unreported(block: _Block) -> bool:
    inside: list[_Block] = []
    for outer in block.outer():
        inside.append(outer)
        if outer.kind != "parenthesis":
            break
    if any(outer.before.upper() in _AGGREGATES for outer in inside):
        return False
    around = inside[-1]
    is_last = around.kind == "statement" or (
        around.kind == "table" and around.parent is not None and _is_member(around)
    )
    if around.kind == "expression":
        return False  # the block around is found itself, or is safe
    if block.within in _RESULTS:
        return is_last
    return block.within in {"WHERE", "ON"} and not block.before.endswith("NOT EXISTS") and not _depends(block)


def _is_member(block: _Block) -> bool:
    """Check whether a block is a member of the statement's UNION."""
    return block.parent is not None and block.parent.kind == "statement" and block.before in {"", "ALL", "UNION"}


def _depends(block: _Block) -> bool:
    """Check whether a subquery names a table outside of it."""
    text = " ".join(block.text)
    own = set(re.findall(r"(?:`\w+`|\)|AS) (\w+)\b", text)) | set(re.findall(r"`\w+`", text))
    return any(name not in own for name in re.findall(r"(?<![\w.])([a-z]\w*)\.", text))


def _expressions(sql: str) -> Iterator[_Block]:
    """Yield the subqueries in expressions."""
    tokens = _TOKEN.findall(sql)
    block, previous, found = _Block(None), ["", ""], list[_Block]()
    for index, token in enumerate(tokens):
        for one in (block, *block.outer()):
            one.text.append(token)
        if token == "(":
            block = _opened(block, previous, tokens[index + 1 :])
            if block.kind == "expression":
                found.append(block)
        elif token == ")":
            assert block.parent is not None
            block = block.parent
        elif token.upper() in _CLAUSES:
            target = next(one for one in (block, *block.outer()) if one.kind != "parenthesis")
            target.clause = token.upper()
        previous = [previous[1], token]
    yield from found


def _opened(block: _Block, previous: list[str], following: list[str]) -> _Block:
    before = previous[1]
    if before.upper() == "EXISTS":
        before = " ".join(previous)
    selects = following[0].upper() in {"SELECT", "WITH"}
    if not selects:
        return _Block(block, before, "parenthesis")
    around = next(one for one in (block, *block.outer()) if one.kind != "parenthesis")
    is_table = before.upper() in _BEFORE_TABLES or (before == "," and around.clause == "FROM")
    return _Block(block, before, "table" if is_table else "expression", around.clause)
