"""Templates of statements: `fill` inserts pieces into one, and `Text` is the result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: A placeholder in a template.
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}")

#: The maximum number of texts that a cache of texts keeps, and the maximum length of a cached text. A full cache is
#: cleared: lists of values of many lengths produce many different texts.
TEXTS_LIMIT, TEXT_LIMIT_CHARACTERS = 1_024, 16_384


def fill(template: str, pieces: Mapping[str, str]) -> str:
    """Return a template with each placeholder ``{name}`` replaced by the piece of that name.

    A piece may contain placeholders too. Its trailing whitespace is dropped.

    Args:
        template: A constant.
        pieces: Texts by name. None may come from a user: a placeholder in it would be replaced as well.
    """
    return _PLACEHOLDER.sub(lambda found: fill(pieces[found[1]].rstrip(), pieces), template)


class Text(str):
    """The text of a statement, with its template and pieces, from which `variants` makes another engine's text.

    Args:
        text: The text.
        template: The template.
        shared: The pieces that a family's statements share.
        pieces: The other pieces.
        shapes: The parameters that are lists, if the template names its parameters; see `sql`.
    """

    __slots__ = ("pieces", "shapes", "shared", "template")

    template: str
    shared: Mapping[str, str]
    pieces: Mapping[str, str]
    shapes: tuple[Any, ...] | None

    def __new__(
        cls,
        text: str,
        template: str,
        shared: Mapping[str, str],
        pieces: Mapping[str, str],
        shapes: tuple[Any, ...] | None = None,
    ) -> Text:
        """See the class."""
        made = super().__new__(cls, text)
        made.template, made.shared, made.pieces, made.shapes = template, shared, pieces, shapes
        return made


def placeholders(count: int, one: str = "%s") -> str:
    """Return ``count`` placeholders of parameters, or copies of another text, separated by commas."""
    return ", ".join([one] * count)
