"""Search by words: the parts of a query, the conditions that find texts with them, and the score of a hit.

This is the only ranking. A text is a hit if it contains a part of the query, and its score is the share of the parts
that it contains, above 0 to 1. A part weighs ``ln(1 + hits / hits with this part)``: the rarer, the more. Only hits of
the same tenant and query are counted, so scores reveal nothing about texts of others.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import log
from typing import Literal, TypeAlias
from zlib import crc32

from .schema import NeededIndex
from .statement import like
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
INDEXED_LENGTH = "BETWEEN @@innodb_ft_min_token_size AND @@innodb_ft_max_token_size"
NGRAM_LENGTH = ">= @@ngram_token_size"
OCEANBASE.instead_of(INDEXED_LENGTH, ">= 0")
OCEANBASE.instead_of(NGRAM_LENGTH, ">= 0")

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
    own_rows = f"SELECT 1 FROM {rows} WHERE tenant = :tenant LIMIT {FEW_TEXTS + 1}"  # noqa: S608 - constants
    by_index = "(({ALONE}) OR NOT {FEW_TEXTS})"
    OCEANBASE.instead_of(by_index, "TRUE")
    phrase = _phrase_in(f"{alias}.search_text")
    OCEANBASE.instead_of(phrase, "TRUE OR '' =")  # what its index finds counts
    return {
        "ALONE": f"(SELECT MIN(tenant) FROM {rows}) = :tenant AND (SELECT MAX(tenant) FROM {rows}) = :tenant",  # noqa: S608 - constants
        "FEW_TEXTS": f"(SELECT COUNT(*) FROM ({own_rows}) AS own) <= {FEW_TEXTS}",  # noqa: S608 - constants
        # Whether the words themselves were searched for in the index.
        "BY_INDEX": by_index,
        "INDEXED_LENGTH": INDEXED_LENGTH,
        "NGRAM_LENGTH": NGRAM_LENGTH,
        "PHRASE": phrase,
        "PENDING_PHRASE": _phrase_in(f"{alias}.pending_text"),
    }


def _phrase_in(column: str) -> str:
    """Return the condition that a text contains whole words one after another, up to their LIKE pattern."""
    # To ICU, joiners as in Persian belong to words; not to `parts_of` and to the index.
    return f"CONCAT(' ', REGEXP_REPLACE({column}, '[\\\\W\\\\u200c\\\\u200d]+', ' '), ' ') LIKE"


@lru_cache(maxsize=128)
def _matches(alias: str, number: int | None) -> str:
    """Return the condition that a text may contain all words of a part; without a number, those of any part."""
    of = "" if number is None else str(number)
    condition = (
        f"MATCH ({alias}.tenant_word, {alias}.search_text)"
        f" AGAINST (IF({{ALONE}}, :words{of}, IF({{FEW_TEXTS}}, :own, :among{of})) IN BOOLEAN MODE)"
    )
    OCEANBASE.instead_of(condition, f"MATCH ({alias}.search_text) AGAINST (:words{of} IN NATURAL LANGUAGE MODE)")
    return condition


class WordSearch:
    """The pieces and parameters of a statement that ranks the texts with any part of a query.

    Its expression ``found`` has a column ``holds0``, ``holds1``, … for each part, unless there is only one. The
    family's pieces include those of `pieces_of`, and the statement has the parameter ``tenant``.

    Args:
        tenant: The tenant.
        parts: See `parts_of`; at least one.
        parser: The parser of the index.
        alias: The alias of the table with the columns ``search_text`` and ``pending_text``.
    """

    def __init__(self, tenant: str, parts: Sequence[str], parser: Parser, alias: str) -> None:
        self._ngram = parser == "ngram"
        self._alias = alias
        several = [*enumerate(parts)] if len(parts) > 1 else []
        indexed = "{matches}" if several else f"({{matches}} AND {self._verified(0, parts[0])})"
        pending = [self._contains(number, part, "pending_text") for number, part in enumerate(parts)]
        #: ``{flags}``, ``{indexed}`` and ``{having}`` select indexed texts, ``{pending_flags}`` and ``{pending}`` texts
        #: that are not indexed yet; ``{weights}`` is joined to ``found``, of whose rows ``{score}`` is the score.
        self.pieces = {
            "flags": "".join(f", {self._contained(number, part)} AS holds{number}" for number, part in several),
            "indexed": indexed,
            "having": f"\n  HAVING {' OR '.join(f'holds{number}' for number, _ in several)}" if several else "",
            "pending_flags": "".join(f", {pending[number]} AS holds{number}" for number, _ in several),
            "pending": f"({' OR '.join(pending)})",
            "weights": _weights(len(several)),
            "score": _score(len(several)),
            "matches": _matches(alias, None),
            **{f"matches{number}": _matches(alias, number) for number, _ in several},
        }
        own = f"+{_word_of(tenant)}*"
        words = [self._boolean(part, parser) for part in parts]
        #: The parameters of the pieces, besides ``tenant``.
        self.values = {"own": own, "words": _any_of(words), "among": self._among(own, words)}
        for number, part in enumerate(parts):
            self.values |= {
                f"words{number}": _any_of(words[number : number + 1]),
                f"among{number}": self._among(own, words[number : number + 1]),
                f"part{number}": part,
                f"like{number}": like(f"*{part}*"),
                f"phrase{number}": like(f"* {part} *"),
            }

    def _boolean(self, part: str, parser: Parser) -> str:
        """Return the words of a part, all of which a text must contain, for a search of the index."""
        return " ".join(f'+"{word}"' if self._ngram else f"+{word}" for word in _indexed_words(part, parser))

    def _among(self, own: str, words: Sequence[str]) -> str:
        """Return the words of any part in texts with the tenant's own word. To ngram each word is a phrase."""
        return own if self._ngram else _any_of([f"{own} {some}" for some in words])

    def _contained(self, number: int, part: str) -> str:
        """Return the condition that an indexed text contains a part: 0 or 1."""
        verified = self._verified(number, part)
        return verified if self._ngram else f"({{matches{number}}} > 0 AND {verified})"

    def _verified(self, number: int, part: str) -> str:
        """Return the condition that a text contains a part, if the index says that it may."""
        contains = self._contains(number, part, "search_text")
        if self._ngram or not _is_word(part):
            return contains
        # The index ignores a word that is too long, and then all texts of the tenant match.
        compared = f"({self._alias}.search_text LIKE :like{number} AND {contains})"
        return f"(CHAR_LENGTH(:part{number}) {{INDEXED_LENGTH}} AND ({{BY_INDEX}} OR {compared}))"

    def _contains(self, number: int, part: str, column: str) -> str:
        """Return the condition that a text contains a part, by the text alone."""
        phrase = "{PHRASE}" if column == "search_text" else "{PENDING_PHRASE}"
        if self._ngram and " " in part:
            return f"({phrase} :like{number})"
        if self._ngram:
            return f"(CHAR_LENGTH(:part{number}) {{NGRAM_LENGTH}} AND {self._alias}.{column} LIKE :like{number})"
        within = f"({phrase} :phrase{number})"
        return f"(CHAR_LENGTH(:part{number}) {{INDEXED_LENGTH}} AND {within})" if _is_word(part) else within


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


def _weights(parts: int) -> str:
    """Return the expression with the weight of each part, joined to ``found``."""
    weights = (f"LN(1 + COUNT(*) * 1e0 / GREATEST(SUM(holds{n}), 1)) AS weight{n}" for n in range(parts))
    return f", (SELECT {', '.join(weights)} FROM found) AS held" if parts else ""  # noqa: S608 - constants


def _score(parts: int) -> str:
    if not parts:
        return "1e0"
    held = " + ".join(f"found.holds{n} * held.weight{n}" for n in range(parts))
    return f"({held}) / ({' + '.join(f'held.weight{n}' for n in range(parts))})"


def _any_of(words: Sequence[str]) -> str:
    return " ".join(f"({some})" for some in words)


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
