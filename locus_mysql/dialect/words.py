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
from .schema import NeededIndex
from .statement import Param
from .variants import OCEANBASE

Parser: TypeAlias = Literal["default", "ngram"]

#: Maximum number of words and phrases of a query that are searched for: the longest, which are likely the rarest. Each
#: is a search of the index, and InnoDB takes at most 31 in one (error 209).
PARTS_LIMIT = 24

#: Maximum number of characters of a query that are read.
QUERY_CHARACTERS = 10_000

#: Up to this number of rows of a tenant, a search compares their texts.
FEW_TEXTS = 1_000

#: MySQL does not index shorter words by default, so the text itself shows whether a phrase contains them.
_INDEXED_LENGTH: dict[Parser, int] = {"default": 3, "ngram": 2}

# A word that the index would not contain, because it is too short or too long, is not found in texts either.
INDEXED_LENGTH = "CHAR_LENGTH(%s) BETWEEN @@innodb_ft_min_token_size AND @@innodb_ft_max_token_size"
NGRAM_LENGTH = "CHAR_LENGTH(%s) >= @@ngram_token_size"
OCEANBASE.instead_of(INDEXED_LENGTH, "%s IS NOT NULL")
OCEANBASE.instead_of(NGRAM_LENGTH, "%s IS NOT NULL")

_PART = re.compile(r'"([^"]*)"|([^\s"]+)')

# A column of a table with a full-text index: a word for the tenant, which is indexed with each text, so that a search
# reads the texts of its tenant only. It is a pair of ideographs, each one of 2,048 rare ones: a token of the parser
# ngram. The pair stands twice, as the default parser ignores words of two characters. The expression is written as
# MySQL shows it. Without a text it is NULL, so that a save indexes nothing.
_BITS = "(144 + ({0} & 31)),(128 + (({0} >> 5) & 63))", "(144 + (({0} >> 11) & 31)),(128 + (({0} >> 16) & 63))"
_IDEOGRAPHS = ",".join(f"227,{bits}" for bits in _BITS).replace("{0}", "crc32(tenant)")
TENANT_WORD = (
    "tenant_word VARCHAR(4) COLLATE utf8mb4_0900_ai_ci"
    f" AS (if((search_text is null),NULL,repeat(convert(char({_IDEOGRAPHS}) using utf8mb4),2))) STORED"
)

#: Must precede a statement that creates the index. Connections of this package set it when they are opened.
NO_STOP_WORDS = "SET SESSION innodb_ft_enable_stopword = 0"

#: The name of the full-text index by its parser, so that a table that was made for the other parser is recognised.
INDEX_NAMES: dict[Parser, str] = {"default": "words", "ngram": "ngrams"}


def index_keys(parser: Parser) -> tuple[str, str]:
    """Return the indexes of a table that is searched: of texts not yet indexed, and of words."""
    with_parser = " WITH PARSER ngram" if parser == "ngram" else ""
    return "KEY pending (unindexed)", f"FULLTEXT KEY {INDEX_NAMES[parser]} (tenant_word, search_text){with_parser}"


def needed_index(table: str, parser: Parser, instead: str = "Set search=False") -> NeededIndex:
    """Return the full-text index that a table needs, with the statements that make it.

    Args:
        table: The table's name.
        parser: The parser of the configuration.
        instead: The alternative to adding the index, as the beginning of the advice.
    """
    other: Parser = "default" if parser == "ngram" else "ngram"
    pending, words = index_keys(parser)
    alter = f"{NO_STOP_WORDS}; ALTER TABLE `{table}`"
    return NeededIndex(
        table,
        INDEX_NAMES[parser],
        f"{instead}, or add the full-text index: {alter} ADD {pending}, ADD {words}",
        INDEX_NAMES[other],
        f"Set search_parser={other!r}, or replace the index: {alter} DROP KEY {INDEX_NAMES[other]}, ADD {words}",
    )


def pieces_of(alias: str, table: str) -> dict[str, str]:
    """Return the pieces of a family's statements that `WordSearch` uses.

    InnoDB reads the texts of all tenants that have a word, and returns error 188 if they are too many for
    ``innodb_ft_result_cache_limit``. A word of the tenant before it excludes texts of others cheaply (1 µs each) where
    the word is no phrase, but still counts them. So

    - a tenant that is alone in the table searches for the words,
    - one with at most `FEW_TEXTS` rows for its own word, and the texts themselves are compared,
    - another one for its own word and the words.

    Args:
        alias: The alias of the table.
        table: Its role.
    """
    rows = f"{{{table}}}"
    alone = f"(SELECT MIN(tenant) FROM {rows}) = %s AND (SELECT MAX(tenant) FROM {rows}) = %s"  # noqa: S608
    few = f"(SELECT COUNT(*) FROM (SELECT 1 FROM {rows} WHERE tenant = %s LIMIT {FEW_TEXTS + 1}) AS own) <= {FEW_TEXTS}"  # noqa: S608
    columns = f"({alias}.tenant_word, {alias}.search_text)"
    matches = f"MATCH {columns} AGAINST (IF({alone}, %s, IF({few}, %s, %s)) IN BOOLEAN MODE)"
    by_index = f"(({alone}) OR NOT {few})"  # whether the words themselves were searched for in the index
    given = "%s IS NOT NULL AND "
    OCEANBASE.instead_of(
        matches,
        f"({given * 2}MATCH ({alias}.search_text) AGAINST (%s IN NATURAL LANGUAGE MODE) AND {given * 2}%s IS NOT NULL)",
    )
    OCEANBASE.instead_of(by_index, f"({given * 2}%s IS NOT NULL)")
    return {
        "MATCHES": matches,
        "BY_INDEX": by_index,
        "INDEXED_LENGTH": INDEXED_LENGTH,
        "NGRAM_LENGTH": NGRAM_LENGTH,
        "PHRASE": phrase_in(f"{alias}.search_text"),
        "PENDING_PHRASE": phrase_in(f"{alias}.pending_text"),
    }


def phrase_in(column: str) -> str:
    """Return a condition that a text contains whole words one after another. Its parameter is their LIKE pattern."""
    # To ICU, joiners as in Persian belong to words; not to `parts_of` and to the index.
    condition = f"CONCAT(' ', REGEXP_REPLACE({column}, '[\\\\W\\\\u200c\\\\u200d]+', ' '), ' ') LIKE %s"
    OCEANBASE.instead_of(condition, "%s IS NOT NULL")
    return condition


class Condition(NamedTuple):
    """A condition with its parameters."""

    sql: str
    params: tuple[Param, ...]


class WordSearch:
    """The pieces of a statement that ranks the texts with any part of a query.

    Its expression ``found`` has a column ``holds0``, ``holds1``, … for each part, unless there is only one. The
    family's pieces include those of `pieces_of`.

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
        self._parts = parts
        self._text = text
        self._numbers = range(len(parts) if len(parts) > 1 else 0)
        pending_parts = [self._in_text(part, pending, "{PENDING_PHRASE}") for part in parts]
        indexed, pending_any = self._indexed(), _any(pending_parts)
        flags = _flags([self._contained(parts[n]) for n in self._numbers])
        pending_flags = _flags([pending_parts[n] for n in self._numbers])
        #: ``{flags}``, ``{indexed}`` and ``{having}`` select indexed texts, ``{pending_flags}`` and ``{pending}`` texts
        #: that are not indexed yet; ``{weights}`` is joined to ``found``, of whose rows ``{score}`` is the score.
        self.pieces = {
            "flags": flags.sql,
            "indexed": indexed.sql,
            "having": self._having(),
            "pending_flags": pending_flags.sql,
            "pending": pending_any.sql,
            "weights": self._weights(),
            "score": self._score(),
        }
        #: The parameters of ``{flags}{indexed}``, and of ``{pending_flags}{pending}``.
        self.params = (*flags.params, *indexed.params)
        self.pending_params = (*pending_flags.params, *pending_any.params)

    def _indexed(self) -> Condition:
        """Return the condition that an indexed text contains the only part, or may contain one of several."""
        matches = self._matches(self._parts)
        return matches if self._numbers else _both(matches, self._verified(self._parts[0]))

    def _having(self) -> str:
        """Return the condition on ``found`` that a text contains a part, where the index alone does not show it."""
        return f"\n  HAVING {' OR '.join(f'holds{n}' for n in self._numbers)}" if self._numbers else ""

    def _weights(self) -> str:
        weights = (f"LN(1 + COUNT(*) * 1e0 / GREATEST(SUM(holds{n}), 1)) AS weight{n}" for n in self._numbers)
        return f", (SELECT {', '.join(weights)} FROM found) AS held" if self._numbers else ""  # noqa: S608 - constants

    def _score(self) -> str:
        if not self._numbers:
            return "1e0"
        held = " + ".join(f"found.holds{n} * held.weight{n}" for n in self._numbers)
        return f"({held}) / ({' + '.join(f'held.weight{n}' for n in self._numbers)})"

    def _matches(self, parts: Sequence[str]) -> Condition:
        """Return the condition that a text may contain all words of any of the parts."""
        own, ngram = f"+{_word_of(self._tenant)}*", self._parser == "ngram"
        words = [
            " ".join(f'+"{word}"' if ngram else f"+{word}" for word in _indexed_words(part, self._parser))
            for part in parts
        ]
        alone = " ".join(f"({some})" for some in words)
        # To the parser ngram each word is a phrase.
        among = own if ngram else " ".join(f"({own} {some})" for some in words)
        return Condition("{MATCHES}", (self._tenant, self._tenant, alone, self._tenant, own, among))

    def _contained(self, part: str) -> Condition:
        """Return the condition that an indexed text contains a part: 0 or 1."""
        verified = self._verified(part)
        if self._parser == "ngram":
            return verified
        matches = self._matches([part])
        return _both(matches._replace(sql=f"{matches.sql} > 0"), verified)

    def _verified(self, part: str) -> Condition:
        """Return the condition that a text contains a part, if the index says that it may."""
        contains = self._in_text(part, self._text, "{PHRASE}")
        if self._parser == "ngram" or not _is_word(part):
            return contains
        beside = (part, self._tenant, self._tenant, self._tenant, like(f"*{part}*"), *contains.params)
        # The index ignores a word that is too long, and then all texts of the tenant match.
        return Condition(
            f"({{INDEXED_LENGTH}} AND ({{BY_INDEX}} OR ({self._text} LIKE %s AND {contains.sql})))", beside
        )

    def _in_text(self, part: str, column: str, phrase: str) -> Condition:
        if self._parser == "ngram":
            if " " in part:
                return Condition(f"({phrase})", (like(f"*{part}*"),))
            return Condition(f"({{NGRAM_LENGTH}} AND {column} LIKE %s)", (part, like(f"*{part}*")))
        within = Condition(f"({phrase})", (like(f"* {part} *"),))
        return _both(Condition("{INDEXED_LENGTH}", (part,)), within) if _is_word(part) else within


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
    parts = list({part.casefold(): part for part in found if part}.values())
    kept = set(sorted(parts, key=len, reverse=True)[:PARTS_LIMIT])
    return [part for part in parts if part in kept]


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


def _any(conditions: Sequence[Condition]) -> Condition:
    sql = " OR ".join(condition.sql for condition in conditions)
    return Condition(f"({sql})", tuple(param for condition in conditions for param in condition.params))


def _flags(conditions: Sequence[Condition]) -> Condition:
    """Return the columns of ``found`` that show which parts a text contains."""
    return Condition(
        "".join(f", {condition.sql} AS holds{number}" for number, condition in enumerate(conditions)),
        tuple(param for condition in conditions for param in condition.params),
    )


def _both(one: Condition, other: Condition) -> Condition:
    return Condition(f"({one.sql} AND {other.sql})", (*one.params, *other.params))


def _word_of(tenant: str) -> str:
    """Return the first two characters of `TENANT_WORD`."""
    bits = crc32(tenant.encode())
    return chr(0x3400 + (bits & 31) * 64 + (bits >> 5 & 63)) + chr(0x3400 + (bits >> 11 & 31) * 64 + (bits >> 16 & 63))


def _indexed_words(part: str, parser: Parser) -> list[str]:
    words = part.split()
    return [word for word in words if len(word) >= _INDEXED_LENGTH[parser]] or words


def _is_word(part: str) -> bool:
    """Return whether a part is one word to MySQL too, which ends words at some marks and at rare characters."""
    return part.replace("_", "a").isalnum() and max(part) <= "\uffff"
