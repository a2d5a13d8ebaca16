"""Commands and options that need no server."""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import pytest

from locus_mysql import extras
from locus_mysql.cli import arguments, maintenance
from locus_mysql.cli import main as cli
from locus_mysql.cli.inspection import show
from locus_mysql.cli.inspection.screen import CELL_CHARACTERS, Column, Screen, number
from locus_mysql.cli.tables import family_name
from locus_mysql.config import MySQLConfig
from locus_mysql.drivers import interface
from locus_mysql.errors import Unavailable
from locus_mysql.families.registry import families


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DSN", "HOST", "TABLE_PREFIX", "SEARCH", "SEARCH_PARSER", "DRIVER", "PASSWORD"):
        monkeypatch.delenv(f"LOCUS_MYSQL_{name}", raising=False)


def test_schema_prints_statements_that_each_end_with_a_semicolon(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema"]) == 0
    first, *statements = capsys.readouterr().out.strip().split(";\n")
    assert first == "SET SESSION innodb_ft_enable_stopword = 0"
    printed = [family for family in families() if not family.on_request]
    assert len(statements) == sum(len(family.schema(MySQLConfig()).names) for family in printed)
    assert "CREATE TABLE IF NOT EXISTS `locus_threads`" in statements[0]
    assert "CREATE TABLE IF NOT EXISTS `locus_checkpoints`" in statements[1]
    assert "FULLTEXT KEY words (tenant_word, search_text)\n" in statements[1]
    assert statements[-1].endswith(";")


def test_schema_follows_prefix_search_and_parser(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema", "--table-prefix", "app_", "--parser", "ngram"]) == 0
    printed = capsys.readouterr().out
    assert "`app_threads`" in printed
    assert "WITH PARSER ngram" in printed
    assert cli.main(["schema", "--no-search"]) == 0
    assert "FULLTEXT" not in capsys.readouterr().out


def test_schema_for_oceanbase_has_partitions_by_thread(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema", "--engine", "oceanbase", "--partitions", "16", "--family", "dicts"]) == 0
    output = capsys.readouterr().out
    assert re.findall(r"PARTITION BY KEY \((.*)\) PARTITIONS 16;\n", output) == [
        "tenant, thread_id",
        "tenant, thread_id",
        "tenant, token",
    ]
    assert "VARBINARY(512)" in output
    assert cli.main(["schema", "--engine", "oceanbase"]) == 0
    output = capsys.readouterr().out
    assert "PARTITION" not in output
    assert "VARBINARY(512)" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--partitions", "4"], "--partitions is for OceanBase: give --engine oceanbase"),
        (["--engine", "oceanbase", "--partitions", "1"], "must be 2 to 8192, not 1"),
        (["--engine", "oceanbase", "--partitions", "9000"], "must be 2 to 8192, not 9000"),
        (["--engine", "oceanbase", "--partitions", "4", "--family", "memu"], "Table `resources` cannot be partitioned"),
    ],
)
def test_partitions_that_cannot_be_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["schema", *arguments]) != 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_schema_and_grants_of_memu_follow_its_scope(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema", "--family", "memu", "--scope", "user_id,team"]) == 0
    printed = capsys.readouterr().out
    assert "CREATE TABLE IF NOT EXISTS `memory_items`" in printed
    assert printed.count("`team` VARCHAR(255) NULL") == printed.count("`user_id` VARCHAR(255) NULL") == 6
    assert cli.main(["schema", "--family", "memu", "--table-prefix", "app_"]) == 0
    assert "REFERENCES `app_resources` (id)" in capsys.readouterr().out
    assert cli.main(["schema", "--family", "memu", "--scope", "level:int,since:datetime,on:bool,id2:uuid"]) == 0
    printed = capsys.readouterr().out
    for column in ("`level` BIGINT", "`since` DATETIME(6)", "`on` TINYINT", "`id2` CHAR(36)"):
        assert printed.count(f"{column} NULL") == 6
    assert cli.main(["schema", "--family", "memu", "--scope", "level:float"]) == 1
    assert "one of str, int, bool, uuid, datetime" in capsys.readouterr().err
    assert cli.main(["schema", "--family", "memu", "--scope", "url"]) == 1
    assert "Scope fields conflict" in capsys.readouterr().err
    assert cli.main(["grants", "--family", "dicts", "--family", "memu", "--database", "app"]) == 0
    printed = capsys.readouterr().out
    assert all(f"ON `app`.`{table}` TO" in printed for table in ("locus_store_threads", "memu_ledger"))
    assert cli.main(["grants", "--family", "memu", "--database", "app", "--create"]) == 0
    assert "CREATE, REFERENCES ON" in capsys.readouterr().out


def test_schema_reads_the_environment(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCUS_MYSQL_TABLE_PREFIX", "env_")
    assert cli.main(["schema"]) == 0
    assert "`env_threads`" in capsys.readouterr().out


def test_an_error_of_ours_is_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema", "--table-prefix", "a`b"]) == 1
    output = capsys.readouterr()
    assert not output.out
    assert output.err.count("\n") == 1
    assert output.err.startswith("locus-mysql: table_prefix: ")


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["nonsense"],
        ["vacuum"],
        ["export"],
        ["export", "file", "--where", "user_id"],
        ["import", "file", "--family", "memu"],
        ["vacuum", "--older-than-days", "soon"],
        ["schema", "--parser", "french"],
        ["mysql://root:hunter2@localhost/app"],
        ["health", "--dsm=mysql://root:hunter2@localhost/app"],
        ["serve", "--port", "mysql://root:hun/t@er2@localhost/app"],
    ],
)
def test_wrong_arguments_end_with_2_and_repeat_no_password(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(argv)
    output = capsys.readouterr()
    assert ended.value.code == 2
    assert "hunter2" not in output.err + output.out
    assert "er2" not in output.err + output.out


@pytest.mark.parametrize("command", ["health", "export -"])
def test_no_error_repeats_the_password_of_a_dsn(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for dsn in ("mysql://root:hunter2@127.0.0.1:1/app", "mysql://root:hunter2@local host:x/app", "root:hunter2@h"):
        assert cli.main([*command.split(), "--dsn", dsn]) == 1
        output = capsys.readouterr()
        assert output.err.startswith("locus-mysql: ")
        assert "hunter2" not in output.err + output.out
        assert "Traceback" not in output.err


def test_a_copy_from_langgraph_names_the_missing_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = arguments.find_spec

    def without_langgraph(name: str) -> object:
        return None if name == "langgraph" else find(name)

    monkeypatch.setattr(arguments, "find_spec", without_langgraph)
    assert cli.main(["copy", "--from", "langgraph-sqlite:x", "--to", "mysql://root@127.0.0.1:1/app"]) == 1
    assert "pip install 'locus-mysql[langgraph]'" in capsys.readouterr().err


def test_without_a_configured_server_the_error_explains_how_to_name_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: argparse.Namespace) -> int:
        raise Unavailable("No answer.")

    monkeypatch.setattr(maintenance, "health", away)
    assert cli.main(["health"]) == 1
    assert "No answer. No server was named: set LOCUS_MYSQL_DSN" in capsys.readouterr().err
    monkeypatch.setattr(show, "diff", away)
    assert cli.main(["diff", "t"]) == 2
    assert "No answer. No server was named: set LOCUS_MYSQL_DSN" in capsys.readouterr().err
    assert cli.main(["health", "--dsn", "mysql://there/app"]) == 1
    assert capsys.readouterr().err == "locus-mysql: No answer.\n"
    monkeypatch.setenv("LOCUS_MYSQL_DSN", "mysql://there/app")
    assert cli.main(["health"]) == 1
    assert capsys.readouterr().err == "locus-mysql: No answer.\n"


def test_the_module_runs_and_its_help_names_every_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "locus_mysql", "--help"], capture_output=True, text=True, check=True)
    for command in ("serve", "schema", "copy", "vacuum", "health"):
        assert f"\n  {command} " in ended.stdout


#: Prints the names of the families' modules that the help imports.
IMPORTED_BY_HELP = """
import sys
from locus_mysql.cli.main import main
try:
    main(["--help"])
except SystemExit:
    print(*(name for name in sys.modules if name.startswith("locus_mysql.families")), file=sys.stderr, end="")
"""


def test_every_command_names_functions_that_exist() -> None:
    parser = cli.parser(cli.COMMANDS)
    for name in cli.COMMANDS:
        with pytest.raises(SystemExit) as ended:
            parser.parse_args([name, "--help"])
        assert ended.value.code == 0


def test_a_command_imports_only_what_it_needs() -> None:
    ended = subprocess.run([sys.executable, "-c", IMPORTED_BY_HELP], capture_output=True, text=True, check=True)
    assert ended.stderr == ""


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
    monkeypatch.setattr(interface, "_drivers", {})  # those that were looked up
    for module in (extras, interface):
        monkeypatch.setattr(module, "is_installed", lambda library: library == "pymysql")
    assert cli.main(["health", "--driver", "asyncmy", "--dsn", "mysql://u@h/d"]) == 1
    assert "give --driver pymysql." in capsys.readouterr().err


def test_an_id_of_300_characters_fits_into_80_columns_of_a_terminal_and_is_whole_in_a_pipe() -> None:
    columns = [Column("thread", itemgetter(0), "bold"), *(number("n", itemgetter(at)) for at in (1, 2, 3))]
    rows = [["x" * 150 + "y" * 150, "12 min", "1,234", "1.2 MB"], ["short", "1 s", "1", "20 B"]]
    terminal, pipe = io.StringIO(), io.StringIO()
    Screen(terminal, terminal=True, width=80).table(columns, rows)
    Screen(pipe, terminal=False).table(columns, rows)
    assert "x" * 150 + "y" * 150 in pipe.getvalue()
    assert len(terminal.getvalue().splitlines()) <= 4
    assert terminal.getvalue().count("x") + terminal.getvalue().count("y") == CELL_CHARACTERS - 1
    assert "1.2 MB" in terminal.getvalue()
