"""Token files and generated tokens."""

from __future__ import annotations

import hashlib
import logging
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from locus_mysql.errors import ConfigError
from locus_mysql.server import tokens
from locus_mysql.server.access import secret_of
from locus_mysql.server.tokens import Caller, Tokens, digest_of, new_token

DIGEST = "ab" * 32
ENTRY = f'[[token]]\nname = "a"\ntenant = "t"\naccess = "read"\nsha256 = "{DIGEST}"\n'


def test_a_made_token_is_found_by_itself_only_and_its_entry_holds_its_digest_only() -> None:
    one, two = new_token("a", "acme", "write"), new_token("b", "acme", "read")
    known = Tokens(one.entry + two.entry)
    assert known.find(one.secret) == Caller("a", "acme", may_write=True)
    assert known.find(two.secret) == Caller("b", "acme", may_write=False)
    assert known.find(one.secret[:-1]) is None
    assert known.find(digest_of(one.secret)) is None
    assert one.secret not in one.entry
    assert tomllib.loads(one.entry)["token"][0]["sha256"] == hashlib.sha256(one.secret.encode()).hexdigest()


@pytest.mark.parametrize("name", ["a b", 'a"b', "a\\b", "ü☃😀", "'", "]]", "#"])
def test_any_printable_name_and_tenant_can_be_had(name: str) -> None:
    made = new_token(name, name, "read")
    assert Tokens(made.entry).find(made.secret) == Caller(name, name, may_write=False)


@pytest.mark.parametrize("name", ["", "a\nb", "a\x7fb", "x" * 129])
def test_a_name_or_tenant_that_could_break_a_log_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        new_token(name, "t", "read")
    with pytest.raises(ConfigError):
        new_token("n", name, "read")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no tokens"),
        ("token = []", "no tokens"),
        ("[[token]", "not TOML"),
        ("SECRET", "not TOML"),
        (ENTRY + ENTRY, "twice"),
        (ENTRY.replace("read", "SECRET"), "access"),
        (ENTRY.replace(DIGEST, "SECRET"), "64 hexadecimal digits"),
        (ENTRY.replace(DIGEST, DIGEST.upper()), "64 hexadecimal digits"),
        (ENTRY.replace('tenant = "t"', ""), "tenant"),
        (ENTRY.replace('"t"', "1"), "tenant"),
        (ENTRY + 'secret = "SECRET"', "secret"),
        (ENTRY + "[other]", "other"),
    ],
)
def test_an_invalid_list_of_tokens_is_refused_without_repeating_it(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        Tokens(text)
    assert "SECRET" not in str(refused.value)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Path:
    """A file with the token ENTRY, checked for changes at every lookup."""
    monkeypatch.setattr(tokens, "LOOK_S", 0.0)
    caplog.set_level(logging.INFO, "locus_mysql.tokens")
    path = tmp_path / "tokens.toml"
    path.write_text(ENTRY)
    return path


@pytest.mark.parametrize("emptied", ["", "# none\n", "token = []"])
def test_a_file_that_is_emptied_takes_all_tokens_away(
    emptied: str, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    known = Tokens(path=file)
    assert known.of_digest(DIGEST) == Caller("a", "t", may_write=False)
    file.write_text(emptied)
    assert known.of_digest(DIGEST) is None
    file.write_text(ENTRY)
    assert known.of_digest(DIGEST) is not None
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@pytest.mark.parametrize(
    "spoil", [Path.unlink, lambda path: path.write_text("[[token]"), lambda path: path.write_bytes(b"\xff")]
)
def test_an_unreadable_file_keeps_the_tokens_and_is_logged_as_an_error_at_intervals(
    spoil: Callable[[Path], object], file: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Tokens(path=file)
    spoil(file)
    for _ in range(3):
        assert known.of_digest(DIGEST) is not None
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "stay valid" in record.getMessage()
    monkeypatch.setattr(tokens, "LOG_AGAIN_S", 0.0)
    assert known.of_digest(DIGEST) is not None
    assert len(caplog.records) == 2
    file.write_text(ENTRY.replace(DIGEST, "cd" * 32))
    assert known.of_digest(DIGEST) is None


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        Tokens(path=tmp_path / "none")
    with pytest.raises(ConfigError, match="directory"):
        Tokens(path=tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        Tokens(path=tmp_path / "binary")
    with pytest.raises(ConfigError, match="either"):
        Tokens()


def test_every_entry_is_compared_whichever_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """The duration of a lookup must reveal nothing about existing tokens."""
    import hmac

    made = [new_token(str(number), "t", "read") for number in range(5)]
    known = Tokens("".join(one.entry for one in made))
    compared: list[str] = []
    whole = hmac.compare_digest

    def counted(one: str, other: str) -> bool:
        compared.append(one)
        return whole(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    for secret in [made[0].secret, made[4].secret, "none"]:
        compared.clear()
        known.find(secret)
        assert len(compared) == 5


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        ("Bearer abc", "abc"),
        ("bearer   abc ", "abc"),
        ("Basic dXNlcjphYmM=", "abc"),
        ("BASIC OmFiYw==", "abc"),
        ("Basic dXNlcjphOmI=", "a:b"),
        ("Basic /w==", None),
        ("Basic dXNlcg==", None),
        ("Basic dXNlcjo=", None),
        ("Bearer" + " x" * 1000, None),
        ("Token abc", None),
        ("abc", None),
        ("", None),
    ],
)
def test_the_token_in_a_header(header: str, secret: str | None) -> None:
    assert secret_of(header) == secret
