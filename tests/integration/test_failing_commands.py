"""Every command in the registry that fails reports the reason in words and never shows a password."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest

from locus_mysql.cli import main as cli
from locus_mysql.cli.main import COMMANDS

from .conftest import MakeConfig

PASSWORD = "S3cret:pass/word%@"

#: The arguments with which each command queries a server, or None if it queries none. FILE is a readable file.
ARGUMENTS: dict[str, tuple[str, ...] | None] = {
    "serve": ("--port", "0"),
    "token": None,
    "schema": None,
    "grants": None,
    "copy": ("--from", "file:.", "--to", "mysql"),
    "embed": None,  # it opens the store of an application
    "export": ("FILE.out",),
    "import": ("FILE",),
    "migrate": ("--check",),
    "reencrypt": ("--check",),
    "vacuum": (),
    "threads": (),
    "show": ("t",),
    "history": ("t",),
    "diff": ("t",),
    "search": ("word",),
    "stats": (),
    "memories": ("list",),
    "session": ("list",),
    "rm": ("t", "--yes"),
    "tenants": (),
    "forget": ("--yes", "--receipt", "FILE.receipt"),
    "health": (),
}


#: A file for `import`: a thread without checkpoints.
ROWS = """{"format":"locus-mysql rows 1","family":"agents","layout":1}
{"owner":["t",1,1,{"b":"AAAAAAAAAAAAAAAAAAAAAA=="},"2026-01-01","2026-01-01",null]}
{"end":{"items":1}}
"""


def test_every_command_is_tried() -> None:
    assert {*ARGUMENTS} == {*COMMANDS}


@pytest.mark.parametrize("failure", ["wrong password", "nobody there", "no such host", "no DSN", "wrong option"])
def test_a_command_that_fails_gives_the_reason_and_shows_no_password(
    failure: str, make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    config = make_config()
    (endpoint,) = config.endpoints
    login = f"mysql://{quote(config.user, safe='')}:{quote(PASSWORD, safe='')}"
    dsn = {
        "wrong password": f"{login}@{endpoint.host}:{endpoint.port}/{config.database}",
        "nobody there": f"{login}@127.0.0.1:1/{config.database}",
        "no such host": f"{login}@nowhere.invalid/{config.database}",
        "no DSN": f"mysql:{login}@{endpoint.host}:port/{config.database}",
        "wrong option": f"{login}@{endpoint.host}:{endpoint.port}/{config.database}?unknown={quote(PASSWORD, safe='')}",
    }[failure]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCUS_MYSQL_RETRY_DEADLINE_S", "1")
    (file := tmp_path / "FILE").write_text(ROWS)
    for command, arguments in ARGUMENTS.items():
        if arguments is None or (command == "serve" and failure in {"nobody there", "no such host"}):
            continue  # `serve` waits for an unreachable database
        (tmp_path / "t").mkdir(exist_ok=True)
        for given in (["--dsn", dsn], []):
            monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn) if not given else monkeypatch.delenv("LOCUS_MYSQL_DSN", False)
            code = run([command, *(one.replace("FILE", str(file)) for one in arguments), *given])
            output = "".join(capsys.readouterr())
            assert code != 0, command
            assert output.strip(), command
            assert "Traceback" not in output, command
            for secret in (PASSWORD, quote(PASSWORD, safe=""), "S3cret", "pass/word"):
                assert secret not in output, (command, output)
    assert not os.path.exists(tmp_path / "FILE.out")  # noqa: PTH110 - the path may be a link


def run(arguments: list[str]) -> int:
    try:
        return cli.main(arguments)
    except SystemExit as ended:  # raised by argparse
        return int(ended.code or 0)
