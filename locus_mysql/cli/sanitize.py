"""Sanitizes stored text for a terminal, so that printing it has no side effects. Pure functions.

A conversation contains text of users, web pages and tools. Control characters could move the cursor, rename the window,
write to the clipboard or create misleading links; characters that change the direction of writing could disguise text;
others are invisible. All of these are shown by their names or code points.
"""

from __future__ import annotations

import re

#: Unicode has a picture character for each C0 control and DEL.
_PICTURES = {**{code: chr(0x2400 + code) for code in range(0x20)}, 0x7F: "\u2421"}

# C1 controls, soft hyphen, direction marks and overrides, zero-width characters, line separators, fillers, lone
# surrogates, variation selectors beyond the common ones, tags, private noncharacters. Joiners (U+200C, U+200D) stay, as
# languages and emoji need them.
_UNSEEN = (
    r"\x80-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HARMFUL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f{_UNSEEN}]")
_HARMFUL_IN_A_LINE = re.compile(rf"[\x00-\x1f\x7f{_UNSEEN}]")
_HARMFUL_IN_JSON = re.compile(rf"[\x7f{_UNSEEN}]")

#: More than four combining marks on one character could cover the lines around it.
_MARKS = re.compile(
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[\u0300-\u036f"
    r"\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)

_TAB = "    "


def sanitize(text: str) -> str:
    """Return a text of several lines without control characters and hidden characters."""
    text = text.replace("\r\n", "\n").replace("\t", _TAB)
    return _MARKS.sub(r"\1", _HARMFUL.sub(_named, text))


def sanitize_line(text: str) -> str:
    """Return a text for one line, such as an id, without control characters; line breaks are escaped, too."""
    return _MARKS.sub(r"\1", _HARMFUL_IN_A_LINE.sub(_named, text))


def sanitize_json(text: str) -> str:
    """Return JSON text with harmful characters as JSON escapes."""
    return _HARMFUL_IN_JSON.sub(_escaped, text)


def cut(text: str, limit: int | None) -> str:
    """Return the beginning of a text and the number of characters that follow; the whole text without a limit."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def _named(found: re.Match[str]) -> str:
    code = ord(found.group())
    return _PICTURES.get(code) or f"<U+{code:04X}>"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
