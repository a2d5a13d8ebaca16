"""Messages as formatted text: a strict renderer of Markdown, `Formatter`.

markdown-it-py only parses. This module makes the HTML from an allowlist of tokens, and everything else stays text: no
token of HTML, no image, no attribute but the target of a link, whose scheme is checked and whose host is shown. Every
text passes through `texts.marked`, which escapes it. Length, tokens and time are limited; a text beyond a limit is
shown as it is stored.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from . import texts

#: Limits of a formatted text: characters and tokens; brackets and signs of emphasis, whose number raises the time of
#: the parser quadratically.
MOST_CHARACTERS, MOST_TOKENS, MOST_BRACKETS, MOST_SIGNS = 10_000, 4_000, 200, 1_000

#: Seconds that the formatting of one page may take; the last text may exceed it by its own time.
PAGE_S = 0.5

#: Characters of a message shown at first; the blocks after them are folded.
SHOWN = 1_500

#: Targets of links: no other scheme, no character that could end the attribute or hide a part of the address.
_TARGET = re.compile(r"(https?://[^\s/?#]|mailto:)[\x21\x23-\x26\x28-\x3b\x3d\x3f-\x7e]*")

#: Hosts of links: ASCII, so that no letter looks like another one.
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|[0-9a-f:.]+")

#: Elements by the types of tokens that open and close them, without attributes.
_ELEMENTS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "td": "td",
    "em": "em",
    "strong": "strong",
    "s": "s",
}

#: A link. The page that it leads to learns nothing of this one.
OPENING_OF_LINK = Markup('<a class="outside" href="{}" rel="noopener noreferrer nofollow">')

#: Classes of the cells of a table, by the alignment that the parser gives them.
_ALIGNED = {"text-align:right": "right", "text-align:center": "center"}


class Formatted(NamedTuple):
    """A formatted text.

    Args:
        beginning: The blocks shown at first.
        rest: The folded ones; empty if there are none.
        more: The number of characters in them.
    """

    beginning: Markup
    rest: Markup
    more: int


class Formatter:
    """Formats the texts of one page.

    Args:
        words: The words of a search, which are marked.
        budget_s: Seconds that it may take.
    """

    def __init__(self, words: str = "", budget_s: float = PAGE_S) -> None:
        self._words = words
        self._left_s = budget_s

    def __call__(self, text: str, role: str = "assistant") -> Formatted | None:
        """Return a formatted text; None if it is to be shown as it is stored.

        Args:
            text: The text.
            role: The role of its message. Results of tools are shown as they are.
        """
        if role == "tool" or not _may_format(text) or self._left_s <= 0:
            return None
        begun = time.perf_counter()
        try:
            return self._formatted(text)
        finally:
            self._left_s -= time.perf_counter() - begun

    def _formatted(self, text: str) -> Formatted | None:
        tokens = _parser().parse(text)
        if sum(1 + len(token.children or ()) for token in tokens) > MOST_TOKENS:
            return None
        lines = text.split("\n")
        pieces: tuple[list[Markup], list[Markup]] = ([], [])
        shown = folded = 0
        for block in _blocks(tokens):
            first, last = block[0].map or (0, 0)
            size = sum(len(line) + 1 for line in lines[first:last])
            fold = bool(pieces[1]) or (shown > 0 and shown + size > SHOWN)
            pieces[fold].append(_rendered(block, self._words))
            shown, folded = (shown, folded + size) if fold else (shown + size, folded)
        return Formatted(Markup("").join(pieces[0]), Markup("").join(pieces[1]), folded)


def _may_format(text: str) -> bool:
    """Return whether a text is short enough, and is not JSON."""
    return (
        0 < len(text) <= MOST_CHARACTERS
        and text.lstrip()[:1] not in {"{", ""}
        and text.count("[") + text.count("]") <= MOST_BRACKETS
        and sum(map(text.count, "*_~")) <= MOST_SIGNS
        and not texts.has_many_marks(text)
    )


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 20})
    parser.enable(["table", "strikethrough"]).disable(["html_block", "html_inline", "image", "reference"])
    parser.validateLink = is_target  # type: ignore[method-assign, assignment] # the documented way to change it
    return parser


def is_target(address: str) -> bool:
    """Return whether a link may lead to an address. A link elsewhere stays text, with its address."""
    if not _TARGET.fullmatch(address):
        return False
    try:
        parts = urlsplit(address)
        if parts.scheme.lower() == "mailto":
            return "@" in parts.path
        return _HOST.fullmatch(parts.hostname or "") is not None and "@" not in parts.netloc
    except ValueError:
        return False


def _blocks(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each top-level block."""
    blocks: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            blocks.append([])
        blocks[-1].append(token)
        depth += token.nesting
    return blocks


def _rendered(tokens: Sequence[Token], words: str) -> Markup:
    return Markup("").join(_piece(token, words) for token in tokens)


def _piece(token: Token, words: str) -> Markup:
    """Return the HTML of a token; of an unknown one its content as text."""
    if token.type == "inline":
        return _inline(token.children or [], words)
    if token.type in {"text", "html_inline", "html_block"}:
        return texts.marked(token.content, words)
    if token.type in {"softbreak", "hardbreak"}:
        return Markup("<br>")
    if token.type == "hr":
        return Markup("<hr>")
    if token.type == "code_inline":
        return Markup("<code>{}</code>").format(texts.marked(token.content, words))
    if token.type in {"fence", "code_block"}:
        code = texts.marked(token.content.removesuffix("\n"), words)
        return Markup('<pre tabindex="0" aria-label="Code">{}</pre>').format(code)
    if token.nesting:
        return _boundary(token)
    return texts.marked(token.content, words)


def _boundary(token: Token) -> Markup:
    """Return the tag that begins or ends an element."""
    kind, _, _ = token.type.rpartition("_")
    opens = token.nesting > 0
    if token.hidden:  # the paragraph of an item in a list without blank lines
        return Markup("")
    if kind == "heading":  # the outline of the page has only the page's own headings
        return Markup('<p class="title">') if opens else Markup("</p>")
    if kind == "table":
        return Markup('<div class="scrolls" tabindex="0"><table>') if opens else Markup("</table></div>")
    if kind in {"td", "th"}:
        scope = ' scope="col"' if kind == "th" else ""
        aligned = _ALIGNED.get(str(token.attrGet("style")), "")
        name = f' class="{aligned}"' if aligned else ""
        tag = f"<{kind}{scope}{name}>" if opens else f"</{kind}>"
        return Markup(tag)  # noqa: S704 - constants
    if kind == "ordered_list" and opens and isinstance(start := token.attrGet("start"), int):
        return Markup('<ol start="{}">').format(start)
    if kind not in _ELEMENTS:
        return Markup("")
    tag = f"<{_ELEMENTS[kind]}>" if opens else f"</{_ELEMENTS[kind]}>"
    return Markup(tag)  # noqa: S704 - constants


def _inline(tokens: Sequence[Token], words: str) -> Markup:
    """Return the HTML of text with emphasis, code and links. The host of a link is shown after its text."""
    pieces: list[Markup] = []
    address, text = "", ""
    for token in tokens:
        if token.type == "link_open":
            address, text = str(token.attrGet("href") or ""), ""
            if is_target(address):
                pieces.append(OPENING_OF_LINK.format(escape(address)))
        elif token.type == "link_close":
            if is_target(address):
                pieces.append(Markup("</a>"))
                if host := _host(address, text):
                    pieces.append(Markup(' <span class="quiet host">({})</span>').format(texts.shown(host)))
        else:
            text += token.content
            pieces.append(_piece(token, words))
    return Markup("").join(pieces)


def _host(address: str, text: str) -> str:
    """Return the host of an address, or the mail address, unless the text of the link is the address."""
    if text == address:
        return ""
    parts = urlsplit(address)
    return parts.hostname or parts.path.partition("?")[0]
