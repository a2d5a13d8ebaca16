"""``python -m locus_mysql serve`` as a process: it starts, is stopped during requests, and loses its database."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from locus.agent import Agent
from locus.memory.backends import HTTPCheckpointer
from locus.testing import ScriptedModel, text

from ci.certificates import self_signed
from locus_mysql import Database, MySQLConfig
from locus_mysql.cli import main as cli
from locus_mysql.cli import serving
from locus_mysql.server.application import create_app
from locus_mysql.server.limits import Limits
from locus_mysql.server.requests import PIECE_BYTES
from locus_mysql.server.tokens import new_token

from ...thoroughness import FULL
from ..commands import dsn_of
from ..conftest import MakeConfig
from ..connecting import connect
from ..proxy import WireProxy
from .raw import RawClient, state
from .running import running

pytestmark = pytest.mark.kept_tables("agents")

#: The timeout of everything in seconds, sufficient on a busy machine.
PATIENCE_S = 120.0

PATH = "/threads/t/checkpoints"


class Service:
    """The command in a separate process."""

    def __init__(self, dsn: str, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "locus_mysql", "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "LOCUS_MYSQL_DSN": dsn, "PYTHONUNBUFFERED": "1", **environment},
        )
        assert self.process.stderr is not None
        self.log = ""
        while "Serving at" not in self.log:
            line = self.process.stderr.readline()
            assert line, f"the service ended: {self.log}"
            self.log += line
        (self.url,) = re.findall(r"Serving at (\S+)/ until", self.log)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log += line

    def stop(self, signum: int = signal.SIGTERM) -> int:
        """Stop the command by a signal, and return its exit code."""
        self.process.send_signal(signum)
        code = self.process.wait(PATIENCE_S)
        self._reading.join(PATIENCE_S)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@contextlib.contextmanager
def serving_at(dsn: str, *arguments: str, **environment: str) -> Iterator[Service]:
    service = Service(dsn, *arguments, **environment)
    try:
        yield service
    finally:
        service.stop(signal.SIGKILL)


@pytest.fixture
def dsn(make_config: MakeConfig) -> str:
    return dsn_of(make_config())


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not come about"
        time.sleep(0.01)


def waits_for_a_lock(config: MySQLConfig) -> bool:
    with connect(config, config.database) as connection, connection.cursor() as cursor:
        return bool(
            cursor.execute(
                "SELECT 1 FROM performance_schema.data_lock_waits w JOIN performance_schema.data_locks l"
                " ON l.engine_lock_id = w.requesting_engine_lock_id WHERE l.object_schema = %s",
                (config.database,),
            )
        )


def refuses(url: str) -> bool:
    host, _, port = url.rpartition("/")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), PATIENCE_S).close()
    except ConnectionError:
        return True
    return False


#: Workers and signals. Other tests stop services with workers by SIGTERM, and one without workers by SIGHUP.
STOPS = [("1", signal.SIGTERM), ("2", signal.SIGINT)]
if FULL:
    STOPS += [("2", signal.SIGTERM), ("1", signal.SIGHUP)]


@pytest.mark.parametrize(("workers", "signum"), STOPS)
def test_asked_to_stop_it_finishes_what_it_has_accepted(
    dsn: str, make_config: MakeConfig, workers: str, signum: signal.Signals
) -> None:
    """A save waits for its thread's row lock when the service receives the signal; another client is idle."""
    config = make_config()
    with serving_at(dsn, "--workers", workers) as service, RawClient(service.url) as idle:
        assert idle.request("GET", "/health").status == 200
        with RawClient(service.url) as client, connect(config, config.database, autocommit=False) as locking:
            assert client.post(PATH, state(checkpoint_id="first")).status == 200
            with locking.cursor() as cursor:
                cursor.execute("SELECT * FROM locus_threads FOR UPDATE")
            with ThreadPoolExecutor(1) as pool:
                saving = pool.submit(client.post, PATH, state(checkpoint_id="second"))
                until(lambda: waits_for_a_lock(config), "the wait for the lock")
                service.process.send_signal(signum)
                until(lambda: refuses(service.url), "the refusal of new clients")
                assert idle.is_closed()
                assert service.process.poll() is None
                locking.rollback()
                answer = saving.result(PATIENCE_S)
            assert (answer.status, json.loads(answer.body)) == (200, {"checkpoint_id": "second"})
            assert client.is_closed()
        assert service.process.wait(PATIENCE_S) == 0
    with connect(config, config.database) as connection, connection.cursor() as cursor:
        assert cursor.execute("SELECT 1 FROM locus_checkpoints WHERE checkpoint_id = 'second'") == 1


def test_elsewhere_than_on_this_machine_it_does_not_start_without_tokens(
    dsn: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(serving.TOKENS_VARIABLE, raising=False)
    for host in ("0.0.0.0", "::"):
        assert cli.main(["serve", "--dsn", dsn, "--port", "0", "--host", host]) == 1
        complaint = capsys.readouterr().err
        assert "needs tokens" in complaint or "cannot listen" in complaint, complaint  # on machines without IPv6
    assert cli.main(["serve", "--dsn", dsn, "--port", "0", "--host", "0.0.0.0"]) == 1
    assert "needs tokens" in capsys.readouterr().err


@pytest.mark.slow
def test_with_tokens_it_is_reached_from_elsewhere_with_one(
    dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["token", "ann", "--tenant", "acme", "--write"]) == 0
    made = capsys.readouterr()
    (secret,) = re.findall(r"lmt_\S+", made.err)
    assert secret not in made.out
    file = tmp_path / "tokens.toml"
    file.write_text(made.out)
    in_environment = {serving.TOKENS_VARIABLE: made.out}
    for arguments, environment, signum in (
        (["--tokens", str(file)], {}, signal.SIGINT),
        ([], in_environment, signal.SIGHUP),
    ):
        with serving_at(dsn, "--host", "0.0.0.0", *arguments, **environment) as service:
            url = service.url.replace("0.0.0.0", "127.0.0.1")
            headers = {"Authorization": f"Bearer {secret}", "Host": "anything.example"}
            assert httpx.get(url + PATH, timeout=PATIENCE_S).status_code == 401
            assert httpx.get(url + PATH, headers=headers, timeout=PATIENCE_S).status_code == 200
            assert service.stop(signum) == 0
            assert secret not in service.log
            assert "caller ann" in service.log


def test_wrong_options_are_reported_before_the_start(
    dsn: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli.main(["serve", "--dsn", dsn, "--port", port]) == 1
        assert f"cannot listen at '127.0.0.1', port {port}" in capsys.readouterr().err
    wrong = {
        "--tokens": (str(tmp_path / "none"), "No such file"),
        "--port": ("70000", "--port must be"),
        "--host": ("no such host", "cannot listen"),
        "--tls-cert": (str(tmp_path / "none"), "belong together"),
        "--max-requests": ("0", "requests must be positive"),
        "--max-body-bytes": ("-1", "body_bytes must be positive"),
    }
    for option, (value, complaint) in wrong.items():
        assert cli.main(["serve", "--dsn", dsn, "--port", "0", option, value]) == 1, option
        assert complaint in capsys.readouterr().err
    refused = MySQLConfig(dsn=dsn).model_copy(update={"database": "no_such_database_here"})
    assert cli.main(["serve", "--dsn", dsn_of(refused), "--port", "0"]) == 1
    assert "no_such_database_here" in capsys.readouterr().err


def test_a_missing_tokens_file_is_reported_with_the_command_that_makes_a_token(
    dsn: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = str(tmp_path / "none.toml")
    assert cli.main(["serve", "--dsn", dsn, "--port", "0", "--tokens", missing]) == 1
    complaint = capsys.readouterr().err
    assert f"--tokens {missing}: " in complaint
    assert "`python -m locus_mysql token`" in complaint
    monkeypatch.setenv(serving.TOKENS_VARIABLE, "tokens.toml")
    assert cli.main(["serve", "--dsn", dsn, "--port", "0"]) == 1
    assert f"{serving.TOKENS_VARIABLE}, which must hold the file's text" in capsys.readouterr().err


def test_a_tokens_file_that_others_may_write_is_reported(
    dsn: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(new_token("ann", "acme", "read").entry)
    for mode, names_repair in ((0o666, True), (0o620, True), (0o644, False)):
        file.chmod(mode)
        assert cli.main(["serve", "--dsn", dsn, "--port", "70000", "--tokens", str(file)]) == 1
        assert ("chmod go-w" in capsys.readouterr().err) == names_repair


def test_a_tenant_beside_tokens_is_refused_as_each_names_its_own(
    dsn: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(new_token("ann", "acme", "read").entry)
    assert cli.main(["serve", "--dsn", dsn, "--port", "0", "--tokens", str(file), "--tenant", "acme"]) == 1
    assert "so --tenant has no effect" in capsys.readouterr().err


def test_a_cookie_key_that_is_short_or_that_others_may_read_is_reported(
    dsn: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tokens, key = tmp_path / "tokens.toml", tmp_path / "cookie.key"
    tokens.write_text(new_token("ann", "acme", "read").entry)
    serve = ["serve", "--dsn", dsn, "--port", "0", "--tokens", str(tokens)]
    assert cli.main([*serve, "--cookie-key", str(key)]) == 1
    assert f"--cookie-key {key}: No such file" in capsys.readouterr().err
    key.write_text("x" * 31 + "\n")
    for mode, names_repair in ((0o644, True), (0o600, False)):
        key.chmod(mode)
        assert cli.main([*serve, "--cookie-key", str(key)]) == 1
        complaint = capsys.readouterr().err
        assert "has 31 bytes" in complaint
        assert ("chmod go-r" in complaint) == names_repair
    monkeypatch.setenv(serving.COOKIE_KEY_VARIABLE, "short")
    assert cli.main(serve) == 1
    assert "has 5 bytes" in capsys.readouterr().err


def test_without_the_extra_the_command_names_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = serving.find_spec
    monkeypatch.setattr(serving, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    assert cli.main(["serve"]) == 1
    assert "pip install 'locus-mysql[server]'" in capsys.readouterr().err


def test_the_service_reports_a_database_that_is_away_and_goes_on_when_it_is_back(
    make_config: MakeConfig, proxy: WireProxy
) -> None:
    config = make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", retry_deadline_s=0.2)
    config = config.model_copy(update={"connect_timeout_s": 0.5, "read_timeout_s": 0.5})
    with running(create_app(config)) as url, RawClient(url) as client:
        until(lambda: client.post(PATH, state()).status == 200, "the first save")
        proxy.black_hole()
        requests: list[Callable[[], Any]] = [
            lambda: client.post(PATH, state(checkpoint_id="lost")),
            lambda: client.request("GET", PATH + "/c"),
            lambda: client.request("DELETE", PATH + "/c"),
            lambda: client.request("GET", "/health"),
        ]
        for request in requests:
            answer = request()
            assert (answer.status, answer.code) == (503, "database_unavailable")
            assert int(answer.headers["retry-after"]) > 0
            assert str(proxy.port) not in answer.body.decode()
        proxy.resume()
        until(lambda: client.request("GET", PATH + "/c").status == 200, "the database's return")
        until(lambda: client.request("GET", "/health").status == 200, "good health")


def test_the_service_starts_while_the_database_is_unavailable(make_config: MakeConfig) -> None:
    with socket.socket() as nobody:  # reserves a port on which nothing listens
        nobody.bind(("127.0.0.1", 0))
        config = make_config(host="127.0.0.1", port=nobody.getsockname()[1])
        with serving_at(dsn_of(config) + "?retry_deadline_s=0") as service:
            assert f"MySQL at 127.0.0.1:{config.port} does not respond" in service.log
            assert httpx.get(service.url + "/health", timeout=PATIENCE_S).status_code == 503
            assert service.stop() == 0


@pytest.mark.kept_tables
async def test_the_log_explains_what_to_do_about_missing_tables(
    make_config: MakeConfig, caplog: pytest.LogCaptureFixture
) -> None:
    with running(create_app(make_config(ddl_mode="validate"))) as url, RawClient(url) as client:
        answer = client.post(PATH, state())
    assert (answer.status, answer.code) == (503, "not_set_up")
    request_id = answer.headers["x-request-id"]
    (line,) = [
        one.getMessage() for one in caplog.records if one.name == "locus_mysql.requests" and one.levelname == "ERROR"
    ]
    assert request_id in line
    assert "make the tables with the output of `python -m locus_mysql schema" in line


async def test_a_request_that_takes_too_long_is_abandoned_and_may_be_repeated(make_config: MakeConfig) -> None:
    config = make_config()
    limits = Limits(request_s=0.5)
    with (
        running(create_app(config, limits=limits)) as url,
        RawClient(url) as client,
        connect(config, config.database, autocommit=False) as locking,
    ):
        until(lambda: client.post(PATH, state(checkpoint_id="first")).status == 200, "the first save")
        with locking.cursor() as cursor:
            cursor.execute("SELECT * FROM locus_threads FOR UPDATE")
        answer = client.post(PATH, state(checkpoint_id="second"))
        assert (answer.status, answer.code) == (503, "timeout")
        assert "retry-after" in answer.headers
        locking.rollback()
        until(lambda: client.post(PATH, state(checkpoint_id="second")).status == 200, "the save")
        listed: list[Any] = []
        until(lambda: listed.append(client.request("GET", PATH)) or listed[-1].status == 200, "the list")
        assert json.loads(listed[-1].body) == {"checkpoints": ["second", "first"]}


async def test_a_request_over_the_concurrency_limit_is_asked_to_retry_later(make_config: MakeConfig) -> None:
    config = make_config()
    limits = Limits(requests=2)  # of which each caller may use one
    with (
        running(create_app(config, limits=limits)) as url,
        RawClient(url) as client,
        RawClient(url) as other,
        connect(config, config.database, autocommit=False) as locking,
        ThreadPoolExecutor(1) as pool,
    ):
        assert client.post(PATH, state(checkpoint_id="first")).status == 200
        with locking.cursor() as cursor:
            cursor.execute("SELECT * FROM locus_threads FOR UPDATE")
        saving = pool.submit(client.post, PATH, state(checkpoint_id="second"))
        until(lambda: waits_for_a_lock(config), "the wait for the lock")
        refused = other.request("GET", PATH)
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "too_many_requests", "1")
        assert other.request("GET", "/health").status == 200
        locking.rollback()
        assert saving.result(PATIENCE_S).status == 200
        assert other.request("GET", PATH).status == 200


async def test_mounted_in_another_application_it_serves_below_its_path(make_config: MakeConfig) -> None:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Mount, Route

    async def home(_request: Request) -> Response:
        return PlainTextResponse("home")

    async with Database(make_config()) as database:
        inner = create_app(database)
        app = Starlette(routes=[Route("/", home), Mount("/agents/memory", inner), Mount("/ü x", inner)])
        with running(app) as url:
            for base in ("/agents/memory", "/%C3%BC%20x"):
                async with HTTPCheckpointer(url + base, timeout=PATIENCE_S) as checkpointer:
                    agent = Agent(model=ScriptedModel([text("hello")] * 4), checkpointer=checkpointer)
                    for thread_id in ("a/b", "..", "%2F", "ü"):
                        await agent.arun("hi", thread_id=thread_id)
                        assert await checkpointer.load(thread_id) is not None
                        assert await checkpointer.delete(thread_id)
                    assert await checkpointer.health_check()
            async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as http:
                assert (await http.get("/")).text == "home"
                assert (await http.get("/agents/memory/nowhere")).json()["error"]["code"] == "not_found"
                assert (await http.get("/health")).status_code == 404


async def test_options_of_a_store_may_stand_beside_a_database(
    make_config: MakeConfig, run_sql: Any, database: str
) -> None:
    async with Database(make_config()) as shared:
        with running(create_app(shared, table_prefix="other_", tenant="acme")) as url:
            async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as http:
                body = {"checkpoint_id": "c", "state": {"messages": []}}
                saved = await http.post("/threads/t/checkpoints", json={**body, "thread_id": "t"})
                kept = await http.put("/sessions/s/variables/a", json={"value": 1})
                listed = await http.get("/threads")
            assert (saved.status_code, kept.status_code) == (200, 200), (saved.text, kept.text)
            assert [one["thread_id"] for one in listed.json()["threads"]] == ["t"]
    tables = {name for (name,) in run_sql(f"SHOW TABLES FROM {database}")}
    assert {"other_checkpoints", "other_working_entries"} <= tables
    assert run_sql(f"SELECT tenant FROM {database}.other_threads") == (("acme",),)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 with its key."""
    return self_signed(tmp_path_factory.mktemp("certificate") / "service.pem")


@pytest.mark.slow
def test_over_tls_it_serves_programs_and_pages(make_config: MakeConfig, certificate: Path, tmp_path: Path) -> None:
    made = new_token("ann", "acme", "write")
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(made.entry)
    trusted = ssl.create_default_context(cafile=str(certificate))
    files = ["--tls-cert", str(certificate), "--tls-key", str(certificate), "--tokens", str(tokens)]
    with serving_at(dsn_of(make_config()), *files) as service:
        assert service.url.startswith("https://")
        with httpx.Client(base_url=service.url, verify=trusted, timeout=PATIENCE_S) as client:
            headers = {"Authorization": f"Bearer {made.secret}"}
            body = {"checkpoint_id": "c", "state": {"messages": [], "note": "x" * 2 * PIECE_BYTES}}
            assert client.post(PATH, json=body, headers=headers).status_code == 200
            assert client.get(PATH + "/c", headers=headers).json()["state"] == body["state"]
            signed_in = client.post("/login", data={"token": made.secret})
            assert "secure" in signed_in.headers["set-cookie"].lower()
            assert client.get("/").status_code == 200
        with RawClient(service.url) as plain:
            plain.send(b"GET /health HTTP/1.1\r\nHost: HOST\r\n\r\n")
            assert plain.is_closed()
        assert httpx.get(service.url + "/health", verify=trusted, timeout=PATIENCE_S).status_code == 200
        assert service.stop() == 0
        assert "Traceback" not in service.log


def test_an_unusable_certificate_is_reported_before_the_start(
    make_config: MakeConfig, certificate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = self_signed(tmp_path / "other.pem")
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nothing of that kind")
    serve = ["serve", "--dsn", dsn_of(make_config()), "--port", "0", "--tls-cert", str(certificate), "--tls-key"]
    for key in (tmp_path / "none", wrong, other):
        assert cli.main([*serve, str(key)]) == 1
        assert f"--tls-key {key} cannot be used: " in capsys.readouterr().err


def test_with_logs_as_json_every_line_of_the_standard_error_is_json(dsn: str, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(range(65, 97)))
    key.chmod(0o644)
    with serving_at(dsn, "--log-format", "json", "--cookie-key", str(key)) as service:
        assert httpx.get(f"{service.url}/health").status_code == 200
        assert service.stop() == 0
        records = [json.loads(line) for line in service.log.splitlines()]
    found = [(record["level"], record["message"].split(" http")[0][:40]) for record in records]
    assert found[:3] == [
        ("WARNING", "Other users of this machine may read " + str(key)[:3]),
        ("INFO", "Serving at"),
        ("WARNING", "Without tokens: every program on this ma"),
    ]
    assert any(record.get("path") == "/health" for record in records[3:])


def test_the_service_bounds_its_selects_a_little_above_its_requests(dsn: str, make_config: MakeConfig) -> None:
    config = make_config()
    with serving_at(dsn) as service:
        assert httpx.post(service.url + PATH, json={"state": {"a": 1}}, timeout=PATIENCE_S).status_code == 200
        with connect(config, config.database) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT MIN(v.variable_value), MAX(v.variable_value) FROM performance_schema.variables_by_thread v"
                " JOIN performance_schema.threads t USING (thread_id) WHERE v.variable_name = 'max_execution_time'"
                " AND t.processlist_db = %s AND t.processlist_id <> CONNECTION_ID()",
                (config.database,),
            )
            ((least_ms, most_ms),) = cursor.fetchall()
    assert Limits().request_s < int(least_ms) / 1000 <= int(most_ms) / 1000 <= Limits().request_s + 10
