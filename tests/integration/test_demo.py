"""The demo runs completely, also as a separate process, and reports failures correctly."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from examples import __main__ as examples
from examples.agents import demo
from locus_mysql.config import MySQLConfig
from locus_mysql.errors import Unavailable
from locus_mysql.families.checkpoints.queries import Queries
from tests.thoroughness import FULL

from .commands import dsn_of
from .drivers_under_test import ASYNC_DRIVERS

RunSql = Callable[..., tuple[Any, ...]]
DEADLINE_S = 180.0


@pytest.fixture
def dsn(config: MySQLConfig, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in [name for name in os.environ if name.startswith("LOCUS_MYSQL_")]:
        monkeypatch.delenv(name)
    return dsn_of(config)


@pytest.fixture
def tables(config: MySQLConfig, run_sql: RunSql) -> Callable[[], tuple[Any, ...]]:
    """Return a function that lists the existing tables."""
    return lambda: run_sql(f"SHOW TABLES FROM {config.database}")


@contextlib.contextmanager
def running_demo(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "examples", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("driver", ASYNC_DRIVERS if FULL else ASYNC_DRIVERS[:1])
def test_every_check_holds_and_nothing_is_left_behind(
    driver: str, dsn: str, tables: Callable[[], tuple[Any, ...]]
) -> None:
    with running_demo("--dsn", dsn, "--driver", driver) as process:
        shown, complaints = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, shown + complaints
    assert "FAILED" not in shown
    assert "\nAll " in shown
    assert "\033" not in shown
    assert complaints == ""
    assert all(f"\n{number}  " in shown for number in range(1, 9))
    assert len(shown.splitlines()) < 100
    assert max(map(len, shown.splitlines())) <= 110
    assert tables() == ()


@pytest.mark.slow
@pytest.mark.parametrize("driver", ASYNC_DRIVERS if FULL else ASYNC_DRIVERS[:1])
@pytest.mark.parametrize(
    ("chapter", "checks"),
    [
        ("langgraph", 7),
        ("turns", 5),
        ("memories", 8),
        ("working", 10),
        ("claude", 9),
        ("openai", 7 if FULL else 6),
        ("pydantic", 6),
        ("strands", 9 if FULL else 8),
        ("adk", 8),
        ("engines", 5),
        ("incident", 7),
        *([("year", 25)] if FULL else []),
    ],
)
def test_a_chapter_holds_and_leaves_nothing_behind(
    chapter: str,
    checks: int,
    driver: str,
    dsn: str,
    tables: Callable[[], tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not FULL:  # the full run fetches the frameworks' own tests
        monkeypatch.setenv("LOCUS_DEMO_QUICK", "true")
    code = examples.main([chapter, "--dsn", dsn, "--driver", driver])
    shown, complaints = capsys.readouterr()
    assert code == 0, shown + complaints
    assert "FAILED" not in shown
    assert f"\nAll {checks} checks held" in shown
    assert complaints == ""
    assert max(map(len, shown.splitlines())) <= 110
    assert tables() == ()


def test_the_chapters_are_named_and_need_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert examples.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "agents",
        "langgraph",
        "turns",
        "memories",
        "working",
        "claude",
        "openai",
        "pydantic",
        "strands",
        "adk",
        "engines",
        "incident",
        "year",
        "failover",
    ]
    with pytest.raises(SystemExit):
        examples.main(["nonsense"])
    assert (
        "there are agents, langgraph, turns, memories, working, claude, openai, pydantic, strands, adk, engines, "
        "incident, year, failover" in capsys.readouterr().err
    )


def test_the_chapter_on_failover_kills_no_server_that_it_has_not_started(capsys: pytest.CaptureFixture[str]) -> None:
    """The chapter itself runs in tests/cluster/test_demo.py."""
    assert examples.main(["failover", "--dsn", "mysql://user:password@localhost/app"]) == 2
    assert "it starts its own" in capsys.readouterr().err


def test_a_check_that_fails_is_shown_and_makes_the_exit_code_1(
    dsn: str,
    tables: Callable[[], tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = Queries.search

    def forgetful(self: Queries, tenant: str, query: str, limit: int = 10) -> Any:
        yield from find(self, tenant, query, limit)
        return []

    monkeypatch.setattr(Queries, "search", forgetful)
    monkeypatch.setattr(demo, "SECTIONS", (demo.conversation, demo.search))
    assert examples.main(["--dsn", dsn]) == 1
    shown = capsys.readouterr().out
    assert "   FAILED     tea was only spoken of in the branch\n" in shown
    assert "2 of 5 checks FAILED" in shown
    assert tables() == ()


def test_an_error_in_the_middle_is_one_line_and_leaves_nothing_behind(
    dsn: str,
    tables: Callable[[], tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_stage: demo.Stage) -> None:
        raise Unavailable("The server went away.")

    monkeypatch.setattr(demo, "SECTIONS", (demo.conversation, fail))
    assert examples.main(["--dsn", dsn]) == 1
    assert capsys.readouterr().err == "demo: The server went away.\n"
    assert tables() == ()


@pytest.mark.slow
def test_stopped_by_a_signal_it_leaves_neither_tables_nor_processes(
    dsn: str, tables: Callable[[], tuple[Any, ...]]
) -> None:
    with running_demo("--dsn", dsn) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("2  "):  # its other process is being started
                break
        process.send_signal(signal.SIGTERM)
        # The pipe ends when no process of the demo holds it any more.
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 128 + signal.SIGTERM
    deadline = time.monotonic() + DEADLINE_S
    while tables() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert tables() == ()
