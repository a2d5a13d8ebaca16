"""Arguments that `serve` refuses before it connects to a database."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from locus_mysql.cli import main as cli
from locus_mysql.cli.serving import _root_path
from locus_mysql.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "path"),
    [("", ""), ("/", ""), ("memory", "/memory"), ("/memory/", "/memory"), ("a/b-c_d.e~f", "/a/b-c_d.e~f")],
)
def test_a_path_is_normalized_to_a_leading_slash_only(given: str, path: str) -> None:
    assert _root_path(given) == path


@pytest.mark.parametrize(
    "given", ["/é", "/a%20b", "/a?b", "/a#b", "/a b", "/a//b", "/a/../b", ".", "/a\\b", "/a\n", "/☃"]
)
def test_a_path_that_would_break_every_request_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="--root-path"):
        _root_path(given)
    where = ["--dsn", "mysql://nobody@127.0.0.1:1/nowhere", "--port", "0"]
    assert cli.main(["serve", *where, f"--root-path={given}"]) == 1
    assert "--root-path" in capsys.readouterr().err


def test_a_long_path_is_checked_quickly() -> None:
    with pytest.raises(ConfigError):
        _root_path("a" * 100_000 + "%")


@pytest.mark.parametrize("option", ["--tokens", "--cookie-key"])
@pytest.mark.parametrize("kind", ["FIFO", "device", "too large"])
def test_an_endless_file_is_refused_at_once(
    option: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    if kind == "FIFO":
        os.mkfifo(file)
    elif kind == "device":
        file = Path("/dev/zero")
    else:
        with file.open("wb") as sparse:
            sparse.truncate(1 << 40)
    where = ["--dsn", "mysql://nobody@127.0.0.1:1/nowhere", "--port", "0"]
    assert cli.main(["serve", *where, option, str(file)]) == 1
    assert option in capsys.readouterr().err
