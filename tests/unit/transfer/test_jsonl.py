"""Reading and writing of lines: their length limit, and the refusal to write to a terminal."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from locus_mysql.cli import main as cli
from locus_mysql.errors import InvalidInput
from locus_mysql.transfer import files
from locus_mysql.transfer.files import limited_lines


def test_lines_come_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 5)
    assert list(limited_lines(io.BytesIO(b"four\n\nno\r\n1234\nlast"))) == [
        b"four\n",
        b"\n",
        b"no\r\n",
        b"1234\n",
        b"last",
    ]
    assert list(limited_lines(io.BytesIO(b""))) == []


def test_a_line_beyond_the_limit_is_named_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 5)
    lines = limited_lines(io.BytesIO(b"four\n12345\n"))
    assert next(lines) == b"four\n"
    with pytest.raises(InvalidInput, match=r"Line 2 is longer than 5 bytes"):
        next(lines)


def test_an_endless_line_ends_in_an_error_and_no_traceback() -> None:
    """Run with less memory than the longest allowed line."""
    code = (
        "import resource, sys\n"
        "from locus_mysql.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_AS, (600_000_000, 600_000_000))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    where = "mysql://nobody@127.0.0.1:1/nowhere"
    with Path("/dev/zero").open("rb") as endless:
        ended = subprocess.run(
            [sys.executable, "-c", code, "import", "-", "--dsn", where, "--driver", "pymysql"],
            stdin=endless, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert ended.returncode == 1
    assert "Line 1 " in ended.stderr
    assert "Traceback" not in ended.stderr


class Terminal(io.TextIOWrapper):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("command", [["export"], ["export", "--family", "memories"], ["export", "--family", "memu"]])
def test_nothing_is_exported_to_a_terminal(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Terminal(raw))
    assert cli.main([*command, "-", "--dsn", "mysql://nobody@127.0.0.1:1/nowhere"]) == 1
    assert raw.getvalue() == b""
    assert "The standard output is a terminal" in capsys.readouterr().err
