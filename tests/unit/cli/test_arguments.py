"""Stored texts never control the terminal that shows them."""

from __future__ import annotations

import io
import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.cli.arguments import cut, sanitize, sanitize_json, sanitize_line
from locus_mysql.cli.inspection.screen import Column, Screen, Segment, json_text, write_json

#: Texts of any characters, with control characters of terminals more often than at random.
HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "\x1b\x9b\x07\x08\r\n\t\x00\x7f\x85\u200b\u200e\u202e\u2066\u2069\u2028\ufeff\ud800\U000e0041[]m;\\"
        ),
    ),
    max_size=60,
)

#: The only escape sequences allowed in output: colours that the command line chooses.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


#: Format characters that are visible, or that languages and emoji need.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, 0x200C, 0x200D}


def obeyed(text: str) -> list[str]:
    """Return the characters that a terminal would interpret or hide."""
    return [one for one in text if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and ord(one) not in SEEN]


def test_no_unicode_character_survives_that_controls_a_terminal_or_is_invisible() -> None:
    everything = "".join(map(chr, range(0x110000)))
    assert obeyed(sanitize_line(everything)) == []
    assert set(obeyed(sanitize(everything))) <= {"\n"}


@given(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126)))
def test_plain_text_is_left_as_it_is(text: str) -> None:
    assert sanitize(text) == sanitize_line(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\u241b[31mred\u241b[0m"),
        ("\x1b]8;;http://evil\x07text\x1b]8;;\x07", "\u241b]8;;http://evil\u2407text\u241b]8;;\u2407"),
        ("\x9b2J", "<U+009B>2J"),
        ("invoice\u202efdp.exe", "invoice<U+202E>fdp.exe"),
        ("hid\U000e0065\U000e0078den", "hid<U+E0065><U+E0078>den"),
        ("half \ud83d", "half <U+D83D>"),
        ("a\r\nb\rc", "a\nb\u240dc"),
        ("a\tb", "a    b"),
        ("\u0928\u092e\u0938\u094d\u0924\u0947 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u65e5\u672c", None),
        ("e" + "\u0301" * 40, "e" + "\u0301" * 4),
    ],
)
def test_control_characters_are_shown_by_name(text: str, shown: str | None) -> None:
    assert sanitize(text) == (text if shown is None else shown)


def test_a_single_line_shows_line_breaks_as_text() -> None:
    assert sanitize_line("one\ntwo") == "one\u240atwo"


@given(HOSTILE)
def test_sanitized_json_has_the_same_value_and_no_control_characters(text: str) -> None:
    stream = io.StringIO()
    write_json({text: [text, 1.5, None]}, stream)
    assert json.loads(stream.getvalue()) == {text: [text, 1.5, None]}
    assert set(obeyed(stream.getvalue())) <= {"\n"}
    assert obeyed(sanitize_json(json_text(text))) == []


@given(HOSTILE, st.booleans())
def test_a_screen_emits_only_its_own_colours(text: str, terminal: bool) -> None:
    stream = io.StringIO()
    screen = Screen(stream, terminal=terminal, width=40)
    screen.line(Segment(text, "bold"), text)
    screen.block(text, "red")
    screen.table([Column("title", str)], [text])
    shown = COLOUR.sub("", stream.getvalue()) if terminal else stream.getvalue()
    assert set(obeyed(shown)) <= {"\n"}


def test_markup_and_emoji_codes_are_only_text() -> None:
    stream = io.StringIO()
    screen = Screen(stream, terminal=False)
    text = "[red]no[/red] :smile: [link=http://evil]x[/link]"
    screen.line(text)
    screen.block(text)
    screen.table([Column("title", str)], [text])
    assert stream.getvalue().count(text) == 3


def test_in_a_pipe_nothing_is_wrapped_cut_off_or_coloured() -> None:
    stream = io.StringIO()
    screen = Screen(stream, terminal=False)
    long = "word " * 400 + "end"
    screen.line(Segment("title ", "bold red"), long)
    screen.block(long, limit=10)
    screen.table([Column("one", str, "bold"), Column("two", lambda _: "x")], [long])
    lines = stream.getvalue().splitlines()
    assert lines[0] == f"title {long}"
    assert lines[1] == f"  {long}"
    assert lines[3] == f"{long}  x"
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("width", [8, 20, 40, 200])
def test_a_terminal_is_never_written_beyond_its_width(width: int) -> None:
    stream = io.StringIO()
    screen = Screen(stream, terminal=True, width=width)
    screen.line(Segment("a" * 100, "bold"), "b" * 100)
    screen.block("c" * 300 + " word")
    screen.table([Column("thread", str), Column("size", lambda _: "1.2 KB", right=True)], ["d" * 90])
    shown = COLOUR.sub("", stream.getvalue())
    assert max(map(len, shown.splitlines())) <= width
    assert [shown.count(one * 2) > 0 for one in "abcd"] == [True] * 4


def test_no_color_leaves_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    Screen(stream, terminal=True, width=40).line(Segment("text", "red"))
    assert "31" not in stream.getvalue()
    assert "text" in stream.getvalue()


def test_a_stream_that_is_not_utf8_gets_escapes() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Screen(stream, terminal=False).line("gr\u00fcn")
    write_json({"a": "gr\u00fcn"}, stream)
    assert raw.getvalue().splitlines()[0] == b"gr\\xfcn"


def test_a_truncated_text_shows_the_length_of_the_rest() -> None:
    assert cut("abcdef", 4) == "abcd\u2026 (2 more characters)"
    assert cut("abcdef", None) == cut("abcdef", 6) == "abcdef"
