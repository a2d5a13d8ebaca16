"""What helps who types a command: groups in the help, corrections, completion, closed pipes, names of the inspector."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from locus_mysql.cli import main as cli
from locus_mysql.cli.inspection.screen import CELL_CHARACTERS, Column, Screen
from locus_mysql.cli.tables import family_name
from locus_mysql.drivers import registry
from locus_mysql.families.registry import families

LOCUS_MYSQL = (sys.executable, "-m", "locus_mysql")


def refused(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_the_help_lists_every_command_once_under_a_heading(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.rstrip(":") in cli.GROUPS] == [f"{group}:" for group in cli.GROUPS]
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line[2] not in " -"]
    assert sorted(listed) == sorted(cli.COMMANDS)


def test_a_misspelt_command_or_option_is_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean threads?" in refused("thread", capsys=capsys)
    assert "Did you mean --family?" in refused("threads", "--famly", "agents", capsys=capsys)
    assert "Did you mean agents?" in refused("threads", "--family", "agent", capsys=capsys)
    assert "Did you mean list?" in refused("session", "lst", capsys=capsys)
    assert "Did you mean" not in refused("threads", "--xyzzy", capsys=capsys)
    password = refused("threads", "--dsm=mysql://user:secret@host/app", capsys=capsys)
    assert "Did you mean --dsn?" in password
    assert "secret" not in password


def test_families_have_the_names_of_the_inspector_too() -> None:
    assert family_name("Long-term memory") == "memories"
    assert family_name("Plain states") == family_name("plain-states") == "dicts"
    assert [family_name(family.name) for family in families()] == [family.name for family in families()]


@pytest.mark.parametrize("arguments", [("schema",), ("--help",), ("serve", "--help"), ("grants", "--database", "app")])
def test_a_closed_pipe_ends_a_command_with_141_and_without_a_message(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([*LOCUS_MYSQL, *arguments], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("line", "expected"),
    [("locus-mysql he", "health"), ("locus-mysql threads --fam", "--family"), ("locus-mysql session l", "list")],
)
def test_a_shell_completes_commands_and_options(line: str, expected: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([*LOCUS_MYSQL], env=os.environ | asked, check=True, capture_output=True)
    assert expected in answer.read_text().split()


def test_a_missing_driver_is_answered_with_the_option_of_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_is_installed", lambda library: library == "pymysql")
    assert cli.main(["health", "--driver", "asyncmy", "--dsn", "mysql://u@h/d"]) == 1
    assert "give --driver pymysql." in capsys.readouterr().err


def test_an_id_of_300_characters_fits_into_80_columns_of_a_terminal_and_is_whole_in_a_pipe() -> None:
    columns = [Column("thread", "bold"), *(Column(title, right=True, whole=True) for title in ("age", "saves", "size"))]
    rows = [["x" * 150 + "y" * 150, "12 min", "1,234", "1.2 MB"], ["short", "1 s", "1", "20 B"]]
    terminal, pipe = io.StringIO(), io.StringIO()
    Screen(terminal, terminal=True, width=80).table(columns, rows)
    Screen(pipe, terminal=False).table(columns, rows)
    assert "x" * 150 + "y" * 150 in pipe.getvalue()
    assert len(terminal.getvalue().splitlines()) <= 4
    assert terminal.getvalue().count("x") + terminal.getvalue().count("y") == CELL_CHARACTERS - 1
    assert "1.2 MB" in terminal.getvalue()
