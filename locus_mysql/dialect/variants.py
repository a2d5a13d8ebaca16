"""Engines that speak MySQL's protocol and another dialect of its SQL: `Variant`.

Every statement is written for MySQL. A connection to another engine has that engine's variant, which translates the
texts that it sends: by rules for differences that all statements share, and by replacements of single texts
(`Variant.instead_of`), which stand beside MySQL's. A connection to MySQL has no variant, and sends the texts unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .statement import (
    TEXT_LIMIT_CHARACTERS,
    TEXTS_LIMIT,
    ParameterNames,
    Query,
    Statement,
    Text,
    column_types,
    fill,
    params_of,
    place_parameters,
)

#: The error of a duplicate key, the key in its message, and the table in a statement that writes.
_DUPLICATE = 1062
_KEY = re.compile(r"for key '([^'.]+)'\W*$")
_WRITTEN = re.compile(r"(?:INTO|UPDATE)\s+`(\w+)`")

#: OceanBase's own number of MySQL's 1146, "no such table". It means 1146 only if the table is not being created.
NO_TABLE_YET = 5019


class FamilyRefused(Exception):
    """The engine does not run a family's statements as MySQL does.

    Args:
        engine: The engine's name.
        family: The family's name.
    """

    def __init__(self, engine: str, family: str) -> None:
        super().__init__(
            f"Tables of family {family!r} are not supported on {engine}: see docs/servers.md for the families that "
            "are. Keep these tables on MySQL."
        )


class Rule(NamedTuple):
    r"""A difference that all statements share.

    Args:
        pattern: The text in MySQL's statements.
        replacement: The engine's text, with ``\1`` for a group of the pattern; or a function that makes it.
        reason: Why.
        tables: Whether the rule is for CREATE TABLE and ALTER TABLE only, or for everything else.
    """

    pattern: str
    replacement: str | Callable[[re.Match[str]], str]
    reason: str
    tables: bool = False


class Variant:
    """One engine's dialect.

    Args:
        name: The engine's name in messages.
        families: The supported families of tables. Others are refused.
        rules: The differences that all statements share, applied in this order.
        settings: Variables that a new session sets there to literals, beside those of all engines.
        limit_us: The variable with the time limit of a statement, in microseconds.
        errors: Numbers of the engine's own errors, and the numbers of MySQL's that mean the same to a caller.
        supports_group_commit: Whether writes of several calls may be sent in one transaction.
    """

    def __init__(
        self,
        name: str,
        *,
        families: Collection[str],
        rules: Iterable[Rule],
        settings: Mapping[str, str],
        limit_us: str,
        errors: Mapping[int, int],
        supports_group_commit: bool,
    ) -> None:
        self.name = name
        self.supports_group_commit = supports_group_commit
        self.families = frozenset(families)
        self.settings = settings
        self.limit_us = limit_us
        self.errors = errors
        self._rules = {
            tables: [(re.compile(rule.pattern), rule.replacement) for rule in rules if rule.tables is tables]
            for tables in (False, True)
        }
        #: MySQL's templates and pieces, and their replacements; see `instead_of`.
        self.replacements: dict[str, str] = {}
        self._texts: dict[str, tuple[str, ParameterNames | None]] = {}

    def instead_of(self, text: str, replacement: str) -> None:
        """Replace a template, or a piece of templates, by another with the same parameters in the same order.

        Args:
            text: MySQL's template or piece.
            replacement: The engine's.
        """
        self.replacements[text] = replacement

    def statement(self, statement: Statement) -> Statement:
        """Return a statement in this engine's text.

        Raises:
            FamilyRefused: The engine does not support the statement's family.
        """
        text, plan = self._text(statement.sql)
        if plan is None or statement.named is None:
            return Statement(text, statement.params)
        return Statement(text, params_of(plan, statement.named))

    def rows(self, statement: Statement, rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query, with text in the columns that it declares as text.

        Ids are binary in that engine, as none of its collations compares by code point without ignoring trailing
        spaces. Invalid UTF-8 in a damaged id becomes U+FFFD, so that the checksum of its row reports the damage.
        """
        if not isinstance(statement, Query) or not rows:
            return rows
        row_type: type[tuple[Any, ...]] = statement.row
        columns = _text_columns(row_type)
        if not any(isinstance(row[column], bytes) for row in rows for column in columns if column < len(row)):
            return rows
        return [
            tuple(
                value.decode(errors="replace") if column in columns and isinstance(value, bytes) else value
                for column, value in enumerate(row)
            )
            for row in rows
        ]

    def error(self, errno: int, message: str, statement: Statement | None) -> tuple[int, str]:
        """Return the number and the message of MySQL's error for the same problem.

        Args:
            errno: The engine's number.
            message: Its message.
            statement: The statement that failed, if it is known.
        """
        if errno == _DUPLICATE and statement is not None and (key := _KEY.search(message)):
            table = _WRITTEN.search(statement.sql)  # MySQL's message names the table of the key
            message = f"{message[: key.start(1)]}{table[1] if table else ''}.{key[1]}'"
        return self.errors.get(errno, errno), message

    def _text(self, text: str) -> tuple[str, ParameterNames | None]:
        made = self._texts.get(text)
        if made is None:
            rendered, plan = self._render(text), None
            if isinstance(text, Text) and text.shapes is not None:
                rendered, plan = place_parameters(rendered, text.shapes)
            for pattern, replacement in self._rules[rendered.startswith(("CREATE TABLE", "ALTER TABLE"))]:
                rendered = pattern.sub(replacement, rendered)
            made = rendered, plan
            if len(rendered) <= TEXT_LIMIT_CHARACTERS:
                if len(self._texts) >= TEXTS_LIMIT:
                    self._texts.clear()
                self._texts[text] = made
        return made

    def _render(self, text: str) -> str:
        if not isinstance(text, Text):
            return self.replacements.get(text, text)
        family = text.shared.get("FAMILY")
        if family is not None and family not in self.families:
            raise FamilyRefused(self.name, family)
        pieces = {name: self._render(piece) for name, piece in {**text.shared, **text.pieces}.items()}
        return fill(self.replacements.get(text.template, text.template), pieces).strip()


@lru_cache(maxsize=1024)
def _text_columns(row: type[Any]) -> frozenset[int]:
    """Return the indexes of the columns that a row declares as text."""
    return frozenset(index for index, types in enumerate(column_types(row)) if str in types and bytes not in types)


def variant_of(server_version: str) -> Variant | None:
    """Return the variant of the engine whose greeting has this version; None for MySQL."""
    return OCEANBASE if "oceanbase" in server_version.lower() else None


#: The reason why ids are binary in OceanBase.
_IDS = (
    "utf8mb4_bin ignores spaces at the end ('a' = 'a '), and there is no utf8mb4_0900_bin. The bytes of UTF-8 are in "
    "the order of the code points."
)


def _selected(values: re.Match[str]) -> str:
    """Return SELECTs with the rows of VALUES."""
    rows, table, columns = values.groups()
    first, *others = re.findall(r"ROW\(([^()]*)\)", rows)
    named = ", ".join(
        f"{value} AS {column}" for value, column in zip(first.split(", "), columns.split(", "), strict=True)
    )
    return f"({' UNION ALL '.join(f'SELECT {row}' for row in (named, *others))}) AS {table}"


#: OceanBase; tried with 4.3.5.
OCEANBASE = Variant(
    "OceanBase",
    families=("agents", "dicts", "current", "graphs", "memories", "working", "transcripts", "memu"),
    rules=(
        Rule(r"tenant_word [^\n]*STORED,\s*", "", "Words are searched for without that of the tenant.", tables=True),
        Rule(
            r"\(tenant_word, search_text\)",
            "(search_text)",
            "The columns of a full-text index must have one collation (error 1235).",
            tables=True,
        ),
        Rule(r"\bVARCHAR\((\d+)\)", lambda length: f"VARBINARY({4 * int(length[1])})", _IDS, tables=True),
        Rule(
            r"UNSIGNED ARRAY\)\), tenant, thread_id, seq\)",
            "UNSIGNED ARRAY)), tenant)",
            "A multi-valued index that names the columns of the primary key was not tried there.",
            tables=True,
        ),
        Rule(r"\butf8mb4_0900_bin\b", "utf8mb4_bin", "There is no other for text that is no key.", tables=True),
        Rule(r"\butf8mb4_0900_ai_ci\b", "utf8mb4_general_ci", "It is the only one that ignores case.", tables=True),
        Rule(r" COLLATE utf8mb4_0900_bin\b", "", "Text is compared with ids, which are binary, as bytes."),
        Rule(
            r"\b(\w+\.(?:thread_id|session_id|name)) LIKE %s",
            r"CONVERT(\1 USING utf8mb4) COLLATE utf8mb4_bin LIKE %s",
            "In a binary text, _ stands for a byte and not for a character.",
        ),
        Rule(r"\bUSING ascii\b", "USING utf8mb4", "There is no other character set (error 1115)."),
        Rule(
            r"\(VALUES (ROW\([^()]*\)(?:, ROW\([^()]*\))*)\) AS (\w+) \(([\w, ]+)\)",
            _selected,
            "A cached plan of a statement with VALUES takes values for those of other columns (errors 1265, 1366).",
        ),
        Rule(r"\bFOR SHARE\b", "LOCK IN SHARE MODE", "FOR SHARE is a syntax error (1064)."),
        Rule(
            r"UTC_TIMESTAMP\(6\) ([+-]) INTERVAL (%s|\([^()]*\)|[\w.]+) MICROSECOND",
            r"CAST(TIMESTAMPADD(MICROSECOND, \1\2, UTC_TIMESTAMP(6)) AS DATETIME(6))",
            "INTERVAL takes no more than 2^31 - 1 microseconds (error 1690); TIMESTAMPADD does.",
        ),
        Rule(
            r"\bUTC_TIMESTAMP\(6\)",
            "SYSDATE(6)",
            "UTC_TIMESTAMP moves in steps of 10 ms, and backwards now and then. The session's time zone is UTC.",
        ),
    ),
    # max_execution_time is ignored: a SELECT ran for 51 s with a limit of 0.5 s. ob_query_timeout limits all
    # statements. Deadlocks are not detected: a lock timeout of 10 s ends them.
    settings={"ob_trx_lock_timeout": "10000000"},
    limit_us="ob_query_timeout",
    errors={
        4012: 3024,  # the query timeout
        3140: 3141,  # invalid JSON as the argument of a function, by which guards undo their batch
        # It rolled the transaction back, as when another server becomes the leader of its partition; at a COMMIT, the
        # outcome is unknown: https://en.oceanbase.com/docs/common-oceanbase-database-10000000001375934
        6002: 3101,
        5627: 1412,  # another session changes the schema: "Schema try again"
        # MySQL never says this of a table that another session has just created, or is creating. OceanBase does.
        1146: NO_TABLE_YET,
    },
    supports_group_commit=False,  # not measured there
)
