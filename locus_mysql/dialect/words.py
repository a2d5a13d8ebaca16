"""Search by words: the parts of a query, the conditions that find texts with them, and the score of a hit.

This is the only ranking. A text is a hit if it contains a part of the query, and its score is the share of the parts
that it contains, above 0 to 1. A part weighs ``ln(1 + hits / hits with this part)``: the rarer, the more. Only hits of
the same tenant and query are counted, so scores reveal nothing about texts of others.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from math import log
from typing import Literal, NamedTuple, TypeAlias
from zlib import crc32

from .like import like
from .statement import Param
from .variants import OCEANBASE

Parser: TypeAlias = Literal["default", "ngram"]

#: Maximum number of words and phrases of a query that are searched for.
PARTS_LIMIT = 16

#: Maximum number of characters of a query that are read.
QUERY_CHARACTERS = 10_000

#: MySQL does not index shorter words by default, so the text itself shows whether a phrase contains them.
_INDEXED_LENGTH = 3

_PART = re.compile(r'"([^"]*)"|([^\s"]+)')

# A column of a table with a full-text index: a word for the tenant, which is indexed with each text, so that a search
# reads the texts of its tenant only. Two of 2,048 rare ideographs each, so the parser ngram has a token for it, twice,
# so it is long enough to be a word. Written as MySQL shows it. Without text it is NULL, so that a save indexes nothing.
_BITS = "(144 + ({0} & 31)),(128 + (({0} >> 5) & 63))", "(144 + (({0} >> 11) & 31)),(128 + (({0} >> 16) & 63))"
_IDEOGRAPHS = ",".join(f"227,{bits}" for bits in _BITS).replace("{0}", "crc32(tenant)")
TENANT_WORD = (
    "tenant_word VARCHAR(4) COLLATE utf8mb4_0900_ai_ci"
    f" AS (if((search_text is null),NULL,repeat(convert(char({_IDEOGRAPHS}) using utf8mb4),2))) STORED"
)

#: The names of the full-text index by its parser: a table that was made for the other parser lacks the index.
INDEX_NAMES: dict[Parser, str] = {"default": "words", "ngram": "ngrams"}


def index_keys(parser: Parser) -> tuple[str, str]:
    """Return the indexes of a table that is searched: of texts not yet indexed, and of words."""
    with_parser = " WITH PARSER ngram" if parser == "ngram" else ""
    return "KEY pending (unindexed)", f"FULLTEXT KEY {INDEX_NAMES[parser]} (tenant_word, search_text){with_parser}"


def advice_on_index(table: str, parser: Parser) -> str:
    """Return what to do if a table lacks the full-text index, or has that of the other parser."""
    other: Parser = "default" if parser == "ngram" else "ngram"
    pending, words = index_keys(parser)
    return (
        f"If it has index {INDEX_NAMES[other]!r}, set search_parser={other!r}, or replace that index: SET SESSION "
        f"innodb_ft_enable_stopword = 0; ALTER TABLE `{table}` DROP KEY {INDEX_NAMES[other]}, ADD {words}; If it has "
        "neither, set search=False, or add both indexes: SET SESSION innodb_ft_enable_stopword = 0; ALTER TABLE "
        f"`{table}` ADD {pending}, ADD {words};"
    )


def matches_of(alias: str, table: str) -> str:
    """Return the piece ``{MATCHES}``: a condition on the full-text index, whose parameters are those of `_against`.

    InnoDB reads all texts of all tenants that have a word, unless a word before it excludes them, and returns error 188
    if they are too many (12,000 rows of another tenant, with the smallest ``innodb_ft_result_cache_limit``). So the
    first word is that of the tenant, except where the table has no other tenant: it costs 0.4 µs for each of its texts.
    """
    column = f"({alias}.tenant_word, {alias}.search_text)"
    alone = f"(SELECT MIN(tenant) FROM {{{table}}}) = %s AND (SELECT MAX(tenant) FROM {{{table}}}) = %s"  # noqa: S608 - constants
    matches = f"MATCH {column} AGAINST (IF({alone}, %s, %s) IN BOOLEAN MODE)"
    OCEANBASE.instead_of(
        matches,
        f"(%s IS NOT NULL AND %s IS NOT NULL AND MATCH ({alias}.search_text) AGAINST (%s IN NATURAL LANGUAGE MODE)"
        " AND %s IS NOT NULL)",
    )
    return matches


def phrase_in(column: str) -> str:
    """Return a condition that a text contains whole words one after another. Its parameter is their LIKE pattern."""
    condition = f"CONCAT(' ', REGEXP_REPLACE({column}, '\\\\W+', ' '), ' ') LIKE %s"
    OCEANBASE.instead_of(condition, "%s IS NOT NULL")
    return condition


class Condition(NamedTuple):
    """A condition with its parameters."""

    sql: str
    params: tuple[Param, ...]


class WordSearch:
    """The pieces of a statement that ranks the texts with any part of a query.

    Its expression ``found`` has a column ``holds0``, ``holds1``, … for each part, unless there is only one. The family
    has the pieces ``{MATCHES}``, ``{PHRASE}`` (in an indexed text) and ``{PENDING_PHRASE}``.

    Args:
        tenant: The tenant.
        parts: See `parts_of`; at least one.
        parser: The parser of the index.
        text: The column of indexed texts.
        pending: That of texts not yet indexed.
    """

    def __init__(self, tenant: str, parts: Sequence[str], parser: Parser, text: str, pending: str) -> None:
        self._tenant = tenant
        self._parser = parser
        self._numbers = range(len(parts) if len(parts) > 1 else 0)
        if parser == "ngram":  # phrases cost all tenants' texts, so only a tenant that is alone uses the index for them
            self._matches = self._against(" ".join(f'"{part}"' for part in parts), f"+{_word_of(tenant)}*")
        else:
            self._matches = self._for_all(parts)
        self._holds = [self._held(part, text) for part in parts]
        self._pending = [self._in_text(part, pending, "{PENDING_PHRASE}") for part in parts]

    @property
    def indexed(self) -> Condition:
        """The condition that an indexed text may contain a part."""
        if self._numbers or not self._needs_text:
            return self._matches
        return Condition(
            f"{self._matches.sql} AND {self._holds[0].sql}", (*self._matches.params, *self._holds[0].params)
        )

    @property
    def waiting(self) -> Condition:
        """The condition that a text not yet indexed contains a part."""
        sql = " OR ".join(condition.sql for condition in self._pending)
        return Condition(f"({sql})", tuple(param for condition in self._pending for param in condition.params))

    def flags(self, *, pending: bool = False) -> Condition:
        """The columns of ``found`` that show which parts a text contains."""
        conditions = [(self._pending if pending else self._holds)[number] for number in self._numbers]
        return Condition(
            "".join(f", {condition.sql} AS holds{number}" for number, condition in enumerate(conditions)),
            tuple(param for condition in conditions for param in condition.params),
        )

    @property
    def having(self) -> str:
        """The condition on ``found`` that a text contains a part, where the index alone does not show it."""
        return f"\n  HAVING {' OR '.join(f'holds{n}' for n in self._numbers)}" if self._numbers else ""

    @property
    def weights(self) -> str:
        """The weights of the parts, to be joined to ``found``."""
        weights = (f"LN(1 + COUNT(*) * 1e0 / GREATEST(SUM(holds{n}), 1)) AS weight{n}" for n in self._numbers)
        return f", (SELECT {', '.join(weights)} FROM found) AS held" if self._numbers else ""  # noqa: S608 - constants

    @property
    def score(self) -> str:
        """The score of a row of ``found``."""
        if not self._numbers:
            return "1e0"
        held = " + ".join(f"found.holds{n} * held.weight{n}" for n in self._numbers)
        return f"({held}) / ({' + '.join(f'held.weight{n}' for n in self._numbers)})"

    @property
    def _needs_text(self) -> bool:
        return "LIKE" in self._holds[0].sql or "PHRASE" in self._holds[0].sql

    def _against(self, alone: str, among_others: str) -> Condition:
        return Condition("{MATCHES}", (self._tenant, self._tenant, alone, among_others))

    def _for_all(self, parts: Sequence[str]) -> Condition:
        """Return the condition that a text contains all words of any of the parts."""
        words = [" ".join(f"+{word}" for word in _indexed_words(part)) for part in parts]
        tenant = f"+{_word_of(self._tenant)}*"
        return self._against(" ".join(f"({some})" for some in words), " ".join(f"({tenant} {some})" for some in words))

    def _held(self, part: str, text: str) -> Condition:
        """Return the condition that an indexed text contains a part, 0 or 1."""
        if self._parser == "ngram":
            return self._in_text(part, text, "{PHRASE}")
        matches = self._for_all([part])
        if _is_word(part):
            return Condition(f"({matches.sql} > 0)", matches.params)
        within = self._in_text(part, text, "{PHRASE}")
        return Condition(f"({matches.sql} > 0 AND {within.sql})", (*matches.params, *within.params))

    def _in_text(self, part: str, column: str, phrase: str) -> Condition:
        if self._parser == "default":
            return Condition(f"({phrase})", (like(f"* {part} *"),))
        return Condition(f"({phrase})" if " " in part else f"({column} LIKE %s)", (like(f"*{part}*"),))


def parts_of(query: str) -> list[str]:
    """Return the words and phrases of a query, each once, in its order.

    Words end at everything that is no letter, digit, mark or underscore; so do those of a phrase, which are joined by
    single spaces. Parts that differ only in case are the same.

    Args:
        query: The query. A phrase is in double quotes.

    Returns:
        At most `PARTS_LIMIT`.
    """
    cleared = "".join(
        character if character in '"_' or unicodedata.category(character)[0] in "LMN" else " "
        for character in query[:QUERY_CHARACTERS]
    )
    found = (" ".join((phrase or word).split()) for phrase, word in _PART.findall(cleared))
    return list({part.casefold(): part for part in found if part}.values())[:PARTS_LIMIT]


def patterns_of(query: str, parser: Parser) -> list[re.Pattern[str]]:
    """Return a pattern for each part of a query, which finds it in a text as the index does, but for accents."""
    patterns = (r"\W+".join(map(re.escape, part.split())) for part in parts_of(query))
    around = r"{0}" if parser == "ngram" else r"(?<!\w){0}(?!\w)"
    return [re.compile(around.replace("{0}", pattern), re.IGNORECASE) for pattern in patterns]


def scores(held: Iterable[Sequence[object]]) -> list[float]:
    """Return the scores of texts that were searched without an index; 0 for one without any part.

    Args:
        held: For each text, something true for each part that it contains.
    """
    texts = list(held)
    hits = sum(map(any, texts))
    weights = [log(1 + hits / max(1, sum(map(bool, flags)))) for flags in zip(*texts, strict=True)]
    return [
        sum(weight for weight, flag in zip(weights, flags, strict=True) if flag) / sum(weights) if any(flags) else 0.0
        for flags in texts
    ]


def excerpt(text: str, offset: int, radius: int = 80) -> str:
    """Return the part of a text around a position, on one line."""
    start, end = max(0, offset - radius), min(len(text), offset + radius)
    return ("…" if start else "") + " ".join(text[start:end].split()) + ("…" if end < len(text) else "")


def _word_of(tenant: str) -> str:
    """Return the first two characters of `TENANT_WORD`."""
    bits = crc32(tenant.encode())
    return chr(0x3400 + (bits & 31) * 64 + (bits >> 5 & 63)) + chr(0x3400 + (bits >> 11 & 31) * 64 + (bits >> 16 & 63))


def _indexed_words(part: str) -> list[str]:
    words = part.split()
    return [word for word in words if len(word) >= _INDEXED_LENGTH] or words


def _is_word(part: str) -> bool:
    """Return whether a part is one word to MySQL too, which ends words at some marks and at rare characters."""
    return part.replace("_", "a").isalnum() and max(part) <= "\uffff"
