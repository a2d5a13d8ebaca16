"""Formatted messages: what is formatted, what stays text, and how much time it takes."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest

from ci.purchasing_desk import REPORT
from locus_mysql.server.pages import markdown
from locus_mysql.server.pages.markdown import Formatter, is_target

#: The elements and attributes that formatted messages may have.
ALLOWED = {
    "p": {"class"}, "ul": set(), "ol": {"start"}, "li": set(), "blockquote": set(), "table": set(), "thead": set(),
    "tbody": set(), "tr": set(), "th": {"scope", "class"}, "td": {"class"}, "em": set(), "strong": set(), "s": set(),
    "code": set(), "pre": {"tabindex", "aria-label"}, "br": set(), "hr": set(), "mark": set(),
    "div": {"class", "tabindex"}, "span": {"class", "title"}, "a": {"class", "href", "rel"},
}  # fmt: skip

HOSTILE = (
    "<script>document.title='taken'</script>",
    "<img src=x onerror=alert(1)> <b onclick=alert(1)>b</b>",
    "<!-- --><style>p{}</style><iframe src=//evil.example></iframe>",
    "[a](javascript:alert(1)) [b](JAVASCRIPT:x) [c](data:text/html,x) [d](vbscript:x) [e](file:///etc/passwd)",
    "[a](&#106;avascript:alert(1)) [b](java&#10;script:x) [c](\x01javascript:x) [d](//evil.example) [e](/logout)",
    "[a](https://evil.example\"onmouseover=alert(1)) [b](<https://evil.example/'onload='x>)",
    "![i](https://evil.example/pixel.png) ![j](javascript:alert(1))",
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)> <https://evil.example/<script>>",
    '```" onmouseover="alert(1)\n</pre><script>alert(1)</script>\n```',
    "`</code><script>` | *<b>* | [<i>](https://a.example)",
    '| a"b | <c> |\n| :-: | --: |\n| <script> | [x](javascript:y) |',
    "&lt;script&gt;alert(1)&lt;/script&gt; &#x3c;b&#x3e; &#x202e;",
    "[tr\u0430p](https://b\u0430nk.example/) [user](https://bank.example@evil.example/) \u202egnp.exe",
    "- " * 60 + "x\n" + "> " * 60 + "y",
    "A template: {{ 7919*6841 }}{% raw %}",
)


class Tags(HTMLParser):
    """Checks that HTML has only allowed elements, in a balanced order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.targets: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        assert {name for name, _ in attrs} <= ALLOWED[tag], (tag, attrs)
        if tag not in {"br", "hr"}:
            self.open.append(tag)
        if tag == "a":
            assert dict(attrs)["rel"] == "noopener noreferrer nofollow"
            self.targets.append(dict(attrs)["href"] or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def html(text: str, words: str = "") -> str:
    made = Formatter(words)(text)
    assert made is not None
    return made.beginning + made.rest


def test_code_tables_lists_and_links_are_formatted() -> None:
    made = html(REPORT)
    Tags(made)
    for piece in (
        "<strong>fell by 12 %</strong>",
        '<th scope="col" class="right">complaints</th>',
        "<ol><li>The poles",
        "<code>out of stock</code>",
        'aria-label="Code">SELECT product',
        "<blockquote>",
        '>the report of the lab</a> <span class="quiet host">(example.com)</span>',
    ):
        assert piece in made


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_becomes_only_allowed_elements(text: str) -> None:
    tags = Tags(html(text))
    assert all(
        target.startswith(("https://evil.example", "https://a.example", "https://xn--")) for target in tags.targets
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_every_word_of_a_hostile_text_stays_readable(text: str) -> None:
    shown: list[str] = []
    reader = HTMLParser()
    reader.handle_data = shown.append  # type: ignore[method-assign]
    reader.feed(html(text))
    for word in ("alert", "taken", "javascript:y", "passwd", "raw"):
        assert (word in text) <= (word in "".join(shown)), word


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("https://example.com/a?b=c#d", True),
        ("http://localhost:8080/", True),
        ("http://[::1]:80/", True),
        ("mailto:ann@example.com", True),
        ("javascript:alert(1)", False),
        ("https:evil.example", False),
        ("https:///x", False),
        ("https://user@evil.example/", False),
        ("https://bank.example%22x", False),
        ("https://b\u0430nk.example/", False),
        ("https://xn--bnk-5cd.example/", True),
        ("https://a.example/'x", False),
        ("ftp://a.example", False),
        ("//a.example", False),
        ("/inspect/delete", False),
        ("", False),
    ],
)
def test_links_lead_to_plain_addresses_only(address: str, allowed: bool) -> None:
    assert is_target(address) is allowed


def test_words_of_a_search_and_hidden_characters_are_marked() -> None:
    assert "<strong>two <mark>tents</mark></strong>" in html("**two tents**", "tents")
    assert "U+202E" in html("a \u202e b")


@pytest.mark.parametrize("text", ["", "   ", '{"a": "*b*"}', "\u202e" * 300, "[" * 300, "*a" * 4_000, "x" * 10_001])
def test_json_and_texts_beyond_the_limits_stay_as_they_are(text: str) -> None:
    assert Formatter()(text) is None


def test_results_of_tools_stay_as_they_are() -> None:
    assert Formatter()("**a**", "tool") is None


def test_a_long_message_is_folded_after_a_block() -> None:
    made = Formatter()("\n\n".join(["A paragraph of some words. " * 20] * 10))
    assert made is not None
    Tags(made.beginning)
    Tags(made.rest)
    assert 1 <= made.beginning.count("<p>") <= 3
    assert made.beginning.count("<p>") + made.rest.count("<p>") == 10
    assert 3_000 < made.more < 6_000
    one = Formatter()("word " * 1_900)
    assert one is not None
    assert one.rest == ""


@pytest.mark.parametrize(
    "piece",
    ["*a ", "[a](b", "![a", "<a ", "` ", "- ", "> ", "1. a\n", "---\n", "|", "|-", "a\n", "&amp;", "\\", "<"],
)
def test_the_time_of_a_page_is_limited(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many hostile messages it has: after the budget, texts are shown as they are stored."""
    text = (piece * 10_000)[:10_000]
    formatter = Formatter(budget_s=0.05)
    begun, calls = time.process_time(), 0
    while formatter(text) is not None and calls < 5_000:
        calls += 1
    monkeypatch.setattr(markdown.time, "perf_counter", lambda: pytest.fail("formatted beyond the budget"))
    if calls:
        assert all(formatter(text) is None for _ in range(100))
    assert time.process_time() - begun < 10
