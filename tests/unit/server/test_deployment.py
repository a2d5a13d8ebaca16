"""The example Containerfile and systemd unit start a command that exists; logs as JSON are lines of JSON."""

from __future__ import annotations

import configparser
import json
import logging
import re
import shutil
import subprocess
from pathlib import Path

from locus_mysql.cli.main import parser
from locus_mysql.server.requests import FIELDS, JsonFormatter

SERVICE = Path(__file__).resolve().parents[3] / "examples/service"
INSTRUCTIONS = {"FROM", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    text = (SERVICE / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def test_the_containerfile_runs_the_service() -> None:
    found = instructions()
    assert {name for name, _ in found} <= INSTRUCTIONS
    assert found[0][0] == "FROM"
    copied = [path for name, rest in found if name == "COPY" for path in rest.split()[:-1]]
    assert [path for path in copied if not (SERVICE.parents[1] / path).exists()] == []
    last = dict(found)
    assert json.loads(last["ENTRYPOINT"]) == ["locus-mysql"]
    arguments = parser(["serve"]).parse_args(json.loads(last["CMD"]))
    assert (arguments.host, arguments.log_format) == ("0.0.0.0", "json")
    check = json.loads(last["HEALTHCHECK"].partition("CMD ")[2])
    compile(check[2], "HEALTHCHECK", "exec")


def test_the_unit_runs_the_service() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(SERVICE / "locus-mysql.service")
    assert unit.sections() == ["Unit", "Service", "Install"]
    program, *words = unit["Service"]["ExecStart"].split()
    assert program.endswith("/locus-mysql")
    arguments = parser(["serve"]).parse_args(words)
    assert str(arguments.tokens) == "${CREDENTIALS_DIRECTORY}/tokens.toml"
    assert int(unit["Service"]["TimeoutStopSec"]) > 65  # the longest stop of the service
    if analyze := shutil.which("systemd-analyze"):
        command = [analyze, "verify", "--recursive-errors=no", SERVICE / "locus-mysql.service"]
        checked = subprocess.run(command, capture_output=True, text=True, check=False)
        assert [line for line in checked.stderr.splitlines() if "is not executable" not in line] == []


def test_a_request_is_logged_as_one_line_of_json() -> None:
    record = logging.LogRecord("locus_mysql.requests", logging.INFO, "f", 1, "%s\n%s", ("GET", "ü"), None)
    setattr(record, FIELDS, {"method": "GET", "status": 200, "duration_ms": 1.23456})
    line = JsonFormatter().format(record)
    assert "\n" not in line
    content = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", content.pop("time"))
    assert content.pop("process") > 0
    assert content == {
        "level": "INFO",
        "logger": "locus_mysql.requests",
        "message": "GET\nü",
        "method": "GET",
        "status": 200,
        "duration_ms": 1.235,
    }
