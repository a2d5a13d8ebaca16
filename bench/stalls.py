"""The longest wait of one tenant's small request while another tenant sends each operation's largest.

It covers every endpoint of the service (API and pages) from its own registry: an endpoint without a largest request
here fails the measurement. The service is `python -m locus_mysql serve` with the tokens of two tenants. A separate
process requests the list of a thread's checkpoints repeatedly, over its own connection, as one tenant; meanwhile the
other tenant sends the operation's largest request, first one and then fifteen at the same time. "Idle" is the longest
wait without other requests. The wait includes the time that MySQL and all clients use on the same processors: the last
wait of each row is that of a third process, which reads one row from MySQL repeatedly, without the service.
"""

from __future__ import annotations

import contextlib
import gc
import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode

from locus_mysql import Database
from locus_mysql.server.application import create_app
from locus_mysql.server.tokens import new_token

from .database import fresh_database
from .environment import environment
from .markdown import markdown_table
from .peers import Peers
from .server import WAIT_S, _port_of

#: Name of this measurement's own page.
PAGE = "stalls"

DRIVER = "mysql-connector"
#: Number of largest requests that are sent at the same time.
AT_ONCE = 15
#: The limit in milliseconds: no tenant may make another one wait longer.
BOUND_MS = 300.0
#: Minimum duration of a measurement, and the duration for the idle service, in seconds.
LEAST_S, IDLE_S = 0.3, 3.0
#: Factor of the input sizes in a quick run.
QUICK = 0.1

#: The process of the other tenant: for each line that it reads, it prints the waits since the last one in milliseconds.
ASKING = """
import http.client, json, select, sys, time
port, token = int(sys.argv[1]), sys.argv[2]
client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
waits, failed = [], []
while True:
    begin = time.perf_counter()
    client.request("GET", "/threads/quiet/checkpoints?limit=1", headers={"Authorization": "Bearer " + token})
    answer = client.getresponse()
    answer.read()
    waits.append(1000 * (time.perf_counter() - begin))
    if answer.status != 200:
        failed.append(answer.status)
    time.sleep(0.002)
    if select.select([sys.stdin], [], [], 0)[0]:
        if not sys.stdin.readline():
            break
        print(json.dumps([max(waits), len(waits), failed]), flush=True)
        waits, failed = [], []
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A request.

    Args:
        path: The path with the query.
        body: JSON; for a page, the fields of a form.
        before: A request that is sent before each repetition; not measured.
    """

    path: str
    body: Any = None
    before: Sequence[tuple[str, str, Any]] = ()


class Client:
    """A tenant's client, which is also signed in to the pages.

    Args:
        port: The service's port.
        token: The tenant's token.
    """

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        status, headers, _ = self.send("POST", "/login", {"token": token}, page=True)
        self._cookie = headers.get("set-cookie", "").partition(";")[0]
        assert status == 303, status
        _, _, page = self.send("GET", "/", page=True)
        self._form_secret = re.findall(rb'name="form_secret" value="(\w+)"', page)[0].decode()

    def send(self, method: str, path: str, body: Any = None, *, page: bool = False) -> tuple[int, Any, bytes]:
        """Send a request on a new connection; return status, headers and body. The status is 0 if it was cut off."""
        client = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        headers, data = {"Authorization": f"Bearer {self._token}"}, None
        if page:
            headers = {"Accept": "text/html", "Cookie": getattr(self, "_cookie", "")}
        if page and body is not None:
            fields = {"form_secret": getattr(self, "_form_secret", ""), **body}
            data, headers["Content-Type"] = urlencode(fields).encode(), "application/x-www-form-urlencoded"
        elif body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        try:
            client.request(method, path, data, headers)
            answer = client.getresponse()
            if path.startswith("/inspect/events"):
                return answer.status, answer.headers, answer.read1(100)
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, {}, b""
        finally:
            client.close()


#: The process that reads from MySQL without the service, in the same way.
READING = """
import json, select, sys, time, pymysql
from locus_mysql import MySQLConfig
config = MySQLConfig(dsn=sys.argv[1])
(server,) = config.endpoints
client = pymysql.connect(
    host=server.host, port=server.port, user=config.user, password=config.password.get_secret_value(),
    database=config.database, autocommit=True,
)
waits = []
with client.cursor() as cursor:
    while True:
        begin = time.perf_counter()
        cursor.execute("SELECT checkpoint_id FROM locus_checkpoints LIMIT 1")
        cursor.fetchall()
        waits.append(1000 * (time.perf_counter() - begin))
        time.sleep(0.002)
        if select.select([sys.stdin], [], [], 0)[0]:
            if not sys.stdin.readline():
                break
            print(json.dumps([max(waits), len(waits), []]), flush=True)
            waits = []
"""


class Asking:
    """A process that asks repeatedly and measures its waits.

    Args:
        program: `ASKING` or `READING`.
        arguments: The program's arguments.
    """

    def __init__(self, program: str, *arguments: str) -> None:
        command = [sys.executable, "-c", program, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def longest(self) -> float:
        """Return the longest wait since the last call, in milliseconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        longest, _, failed = json.loads(self._process.stdout.readline())
        assert not failed, f"the other tenant was answered {failed}"
        return float(longest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


def operations() -> list[tuple[str, str]]:
    """Return every operation of the service: method and template."""
    with Database("mysql://nobody@localhost/nowhere", driver="pymysql") as database:
        groups = create_app(database, vacuum=True).state.groups
    return [(one.method, one.template) for group in groups for one in group.endpoints]


def in_order(keys: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return operations with deletions at the end, as all others need the stored data."""
    return sorted(keys, key=lambda key: key[0] == "DELETE")


def is_page(template: str) -> bool:
    """Return whether an operation belongs to a page."""
    return template == "/" or template.split("/")[1] in {"inspect", "login", "logout", "static"}


@dataclass
class Largest:
    """The largest requests, and the data that must be stored for them.

    Args:
        scale: 1 for the largest sizes that the service accepts; a fraction for smaller ones.
    """

    scale: float
    calls: dict[tuple[str, str], Call] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.text = "Ada drinks green tea in the morning. " * int(200_000 * self.scale)  # 7.4 MB
        self.state = {"messages": messages(int(6_000 * self.scale)), "note": self.text}
        self.metadata = {"tags": [f"tag {number}" for number in range(900)], "note": "x" * 45_000}
        self.nested = {
            f"key {number}": [number, str(number), {"a": [number]}] for number in range(int(8_000 * self.scale))
        }
        self.words = {f"key {number}": f"word{number} and other{number}" for number in range(int(60_000 * self.scale))}
        self.count = max(20, int(300 * self.scale))
        for make in (self._threads, self._memories, self._sessions, self._pages):
            make()

    def _threads(self) -> None:
        for path, own in (
            ("/threads/{thread_id}/checkpoints", "/threads/new/checkpoints"),
            ("/threads/checkpoints", "/threads/checkpoints"),
            ("/checkpoints", "/checkpoints"),
        ):
            # The other two paths have the same handlers, so their requests are small.
            new = {"checkpoint_id": "c", "state": self.state if "{" in path else {"a": 1}}
            small = ("POST", own, {"checkpoint_id": "small", "state": {"a": 1}})
            load = own.replace("new", "large")
            self.calls[("POST", path)] = Call(own, encoded(new))
            self.calls[("GET", path)] = Call(f"{own.replace('new', 'many')}?limit=100000")
            self.calls[("DELETE", path)] = Call(own, before=[("POST", own, encoded(new))])
            self.calls[("GET", f"{path}/{{checkpoint_id}}")] = Call(f"{load}/c")
            self.calls[("DELETE", f"{path}/{{checkpoint_id}}")] = Call(f"{own}/small", before=[small])
        self.calls |= {
            ("GET", "/health"): Call("/health"),
            ("GET", "/openapi.json"): Call("/openapi.json"),
            ("GET", "/threads"): Call("/threads?limit=1000&pattern=" + quote("*a*" * 100 + "*")),
            ("GET", "/threads/{thread_id}"): Call("/threads/many"),
            ("GET", "/threads/{thread_id}/history"): Call("/threads/many/history?limit=250"),
            ("GET", "/threads/{thread_id}/metadata"): Call("/threads/many/metadata"),
            ("GET", "/threads/{thread_id}/state"): Call("/threads/large/state?checkpoint_id=c"),
            ("DELETE", "/threads/{thread_id}"): Call(
                "/threads/gone", before=[("POST", "/threads/gone/checkpoints", encoded({"state": {"a": 1}}))]
            ),
            ("GET", "/families"): Call("/families"),
            ("POST", "/threads/{thread_id}/copy"): Call(
                "/threads/many/copy", {"to": "copy"}, [("DELETE", "/threads/copy/checkpoints", None)]
            ),
            ("GET", "/search"): Call("/search?limit=100&q=" + quote("tea morning " * 300)),
            ("GET", "/metadata"): Call("/metadata?limit=1000&key=tags&value=" + quote(json.dumps(["tag 1"] * 450))),
            ("POST", "/vacuum"): Call("/vacuum", {"older_than_days": 30.0}),
        }

    def _memories(self) -> None:
        item_key = {"namespace": ["bench", "large"], "key": "k"}
        query = "namespace=bench&namespace=large&key=k"
        items = [
            {"namespace": ["batch"], "key": str(at), "value": {"text": self.text[: len(self.text) // 1000]}}
            for at in range(1_000)
        ]
        compared = int(1_000 * self.scale)  # the maximum number and length of values that a filter may compare
        wanted = {"text": {"$in": [f"{number:0240}" for number in range(compared)]}}
        self.calls |= {
            ("PUT", "/memories/item"): Call(
                "/memories/item", encoded({**item_key, "value": {"words": self.words, "nested": self.nested}})
            ),
            ("GET", "/memories/item"): Call(f"/memories/item?{query}"),
            ("DELETE", "/memories/item"): Call(
                "/memories/item?namespace=bench&key=gone",
                before=[
                    ("PUT", "/memories/item", encoded({"namespace": ["bench"], "key": "gone", "value": self.words}))
                ],
            ),
            ("POST", "/memories/batch"): Call("/memories/batch", encoded({"items": items})),
            ("POST", "/memories/search"): Call(
                "/memories/search", encoded({"filter": wanted, "query": "tea", "limit": 1000})
            ),
            ("GET", "/memories/keys"): Call("/memories/keys?namespace=batch&limit=1000"),
            ("GET", "/memories/namespaces"): Call("/memories/namespaces?limit=1000&" + "&".join(["prefix=*"] * 20)),
        }

    def _sessions(self) -> None:
        base, value = "/sessions/large", {"value": {"text": self.text, "nested": self.nested}}
        fits = {"value": {"text": self.text[: int(900_000 * self.scale)]}}
        variables = {f"v{number}": self.words for number in range(3)}
        checkpoint = ("POST", f"{base}/checkpoints", {})
        at = "/sessions/{session_id}"
        task = {"task_id": "t", "data": {"text": self.text, "nested": self.nested}}
        self.calls |= {
            ("GET", "/sessions"): Call("/sessions?limit=1000"),
            ("GET", at): Call(base),
            ("DELETE", at): Call("/sessions/ends", before=[("PUT", "/sessions/ends/variables/a", fits)]),
            ("POST", f"{at}/touch"): Call(f"{base}/touch", {}),
            ("GET", f"{at}/keys"): Call(f"{base}/keys?pattern=*"),
            ("GET", f"{at}/variables"): Call(f"{base}/variables"),
            ("PUT", f"{at}/variables"): Call(f"{base}/variables", encoded({"variables": variables})),
            ("DELETE", f"{at}/variables"): Call(
                "/sessions/ends/variables", before=[("PUT", "/sessions/ends/variables/a", fits)]
            ),
            ("GET", f"{at}/variables/{{key}}"): Call(f"{base}/variables/a"),
            ("PUT", f"{at}/variables/{{key}}"): Call(f"{base}/variables/a", encoded(value)),
            ("DELETE", f"{at}/variables/{{key}}"): Call(
                "/sessions/ends/variables/a", before=[("PUT", "/sessions/ends/variables/a", fits)]
            ),
            ("GET", f"{at}/variables/{{key}}/ttl"): Call(f"{base}/variables/a/ttl"),
            ("POST", f"{at}/variables/{{key}}/increment"): Call(
                f"{base}/variables/n/increment", {"by": 2**62 - 1}, [("DELETE", f"{base}/variables/n", None)]
            ),
            ("POST", f"{at}/variables/{{key}}/compare-and-set"): Call(
                f"{base}/variables/a/compare-and-set", encoded({"expected": value["value"], "value": 1})
            ),
            ("GET", f"{at}/task"): Call(f"{base}/task"),
            ("PUT", f"{at}/task"): Call(f"{base}/task", encoded(task)),
            ("DELETE", f"{at}/task"): Call(
                "/sessions/ends/task", before=[("PUT", "/sessions/ends/task", {"task_id": "t", "data": fits})]
            ),
            ("GET", f"{at}/scratchpad"): Call(f"{base}/scratchpad"),
            ("POST", f"{at}/scratchpad"): Call(f"{base}/scratchpad", encoded({"content": self.text})),
            ("DELETE", f"{at}/scratchpad"): Call(
                "/sessions/ends/scratchpad",
                before=[("POST", "/sessions/ends/scratchpad", {"content": fits["value"]["text"]})],
            ),
            ("GET", f"{at}/checkpoints"): Call(f"{base}/checkpoints"),
            ("POST", f"{at}/checkpoints"): Call(f"{base}/checkpoints", {}),
            ("POST", f"{at}/checkpoints/{{checkpoint_id}}/restore"): Call(
                f"{base}/checkpoints/CHECKPOINT/restore", before=[checkpoint]
            ),
            ("DELETE", f"{at}/checkpoints/{{checkpoint_id}}"): Call(
                f"{base}/checkpoints/CHECKPOINT", before=[checkpoint]
            ),
        }

    def _pages(self) -> None:
        large, labels = "family=agents&thread=large", quote(json.dumps(["bench", "large"]))
        copied = [("DELETE", "/threads/copy/checkpoints", None)]
        self.calls |= {
            ("GET", "/"): Call("/?family=agents&q=*a*"),
            ("GET", "/inspect/thread"): Call(f"/inspect/thread?{large}&find=tea&words=tea"),
            ("GET", "/inspect/state.json"): Call(f"/inspect/state.json?{large}"),
            ("GET", "/inspect/difference"): Call(f"/inspect/difference?{large}&before=b&after=c&all=true"),
            ("GET", "/inspect/events"): Call(f"/inspect/events?{large}"),
            ("GET", "/inspect/search"): Call("/inspect/search?q=" + quote("tea morning " * 300)),
            ("GET", "/inspect/metadata"): Call(
                "/inspect/metadata?key=tags&value=" + quote(json.dumps(["tag 1"] * 450))
            ),
            ("GET", "/inspect/statistics"): Call("/inspect/statistics?family=agents"),
            ("GET", "/inspect/memories"): Call("/inspect/memories?q=tea"),
            ("GET", "/inspect/memory"): Call(f"/inspect/memory?namespace={labels}&key=k&find=tea"),
            ("GET", "/inspect/sessions"): Call("/inspect/sessions?q=*a*"),
            ("GET", "/inspect/session"): Call("/inspect/session?session=large&find=tea"),
            ("GET", "/inspect/copy"): Call(f"/inspect/copy?{large}&checkpoint=c"),
            ("POST", "/inspect/copy"): Call(
                "/inspect/copy", {"family": "agents", "thread": "large", "target": "copy", "checkpoint": "c"}, copied
            ),
            ("GET", "/inspect/delete"): Call(f"/inspect/delete?{large}&checkpoint=c"),
            ("POST", "/inspect/delete"): Call(
                "/inspect/delete",
                {"family": "agents", "thread": "gone"},
                [("POST", "/threads/gone/checkpoints", encoded({"state": self.state}))],
            ),
            ("GET", "/inspect/zone"): Call("/inspect/zone?next=" + "/" * 1_000),
            ("POST", "/inspect/zone"): Call("/inspect/zone", {"zone": "x" * 60_000}),
            ("GET", "/login"): Call("/login?next=" + "/" * 1_000),
            ("POST", "/login"): Call("/login", {"token": "x" * 60_000}),
            ("POST", "/logout"): Call("/logout", {"form_secret": "x" * 60_000}),
            ("GET", "/static/{name}"): Call("/static/style.css"),
        }

    def store(self, client: Client) -> None:
        """Store the data that requests read."""
        for number in range(self.count):
            turn = {"state": {"messages": messages(1), "number": number}, "metadata": {**self.metadata, "n": number}}
            expect(client.send("POST", "/threads/many/checkpoints", turn), 200)
        for checkpoint_id in ("b", "c"):
            state = {**self.state, "messages": [*self.state["messages"], {"role": "user", "content": checkpoint_id}]}
            new = {"checkpoint_id": checkpoint_id, "state": state}
            expect(client.send("POST", "/threads/large/checkpoints", encoded(new)), 200)
        for path in ("/threads/checkpoints", "/checkpoints"):
            expect(client.send("POST", path, {"checkpoint_id": "c", "state": {"a": 1}}), 200)
        for key in (("PUT", "/memories/item"), ("POST", "/memories/batch")):
            status, _, answer = client.send(key[0], self.calls[key].path, self.calls[key].body)
            if status != 200:  # on a busy machine the largest may exceed the time limit of a request
                print(f"bench: stalls: what {key} sends is not stored: {status} {answer[:300]!r}", file=sys.stderr)
        # A value of a session has at most 1 MB. The larger measured values are refused.
        value = {"value": {"text": self.text[: int(900_000 * self.scale)]}}
        for key in ("a", "b", "c", "d", "e", "f", "g", "h"):
            expect(client.send("PUT", f"/sessions/large/variables/{key}", value), 200)
        expect(client.send("PUT", "/sessions/large/task", {"task_id": "t", "data": value}), 200)
        for _ in range(10):
            note = {"content": value["value"]["text"][:100_000]}
            expect(client.send("POST", "/sessions/large/scratchpad", note), 200)


def expect(answer: tuple[int, Any, bytes], status: int) -> None:
    """Raise an error if an answer has another status."""
    assert answer[0] == status, (answer[0], answer[2][:500])


def encoded(value: object) -> bytes:
    """Return a body, encoded before the measurement."""
    return json.dumps(value).encode()


def messages(count: int) -> list[dict[str, Any]]:
    """Return a conversation in which every fourth message calls a tool without an id."""
    calls = [{"name": "look", "arguments": {"place": "Bonn"}}]
    return [
        {"role": "assistant", "content": f"It is {number} degrees.", **({"tool_calls": calls} if number % 4 else {})}
        for number in range(count)
    ]


def store_graph(dsn: str, turns: int) -> None:
    """Save a LangGraph thread with a number of turns, as tenant `noisy`."""
    from langgraph.checkpoint.base import empty_checkpoint

    from locus_mysql.integrations.langgraph import MySQLSaver

    texts: list[str] = []
    with MySQLSaver(dsn, driver="pymysql", tenant="noisy") as saver:
        config: Any = {"configurable": {"thread_id": "graph", "checkpoint_ns": ""}}
        for number in range(turns):
            texts.append(f"turn {number}: " + "tea " * 20)
            checkpoint = {**empty_checkpoint(), "channel_values": {"messages": list(texts)}}
            checkpoint["channel_versions"] = {"messages": f"{number + 1:032}"}
            config = saver.put(config, checkpoint, {"step": number}, dict(checkpoint["channel_versions"]))  # type: ignore[arg-type]


def more_cases(scale: float) -> dict[tuple[str, str], Call]:
    """Return requests beside the largest of each operation: pages of a graph, and the largest that a session accepts.

    The service reads larger bodies than a session accepts, so those that `Largest` sends to sessions are refused.
    """
    value = "x" * int(1_000_000 * scale)
    variables = {"variables": {f"v{number}": value for number in range(8)}}
    fresh = [("DELETE", "/sessions/fits", None)]
    return {
        ("GET", "/inspect/thread (a graph)"): Call("/inspect/thread?family=graphs&thread=graph"),
        ("GET", "/inspect/state.json (a graph)"): Call("/inspect/state.json?family=graphs&thread=graph"),
        ("PUT", "/sessions/{session_id}/variables (accepted)"): Call(
            "/sessions/fits/variables", encoded(variables), fresh
        ),
        ("PUT", "/sessions/{session_id}/variables/{key} (accepted)"): Call(
            "/sessions/fits/variables/a", encoded({"value": value}), fresh
        ),
        ("PUT", "/sessions/{session_id}/task (accepted)"): Call(
            "/sessions/fits/task", encoded({"task_id": "t", "data": {"text": value[: -len(value) // 10]}}), fresh
        ),
        ("POST", "/sessions/{session_id}/scratchpad (accepted)"): Call(
            "/sessions/fits/scratchpad", encoded({"content": value[: -len(value) // 10]}), fresh
        ),
    }


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure every operation."""
    scale = QUICK if quick else 1.0
    with fresh_database(dsn) as own, two_tenants(own) as (port, noisy, quiet):
        largest = Largest(scale)
        client = Client(port, noisy)
        largest.store(client)
        store_graph(own, max(50, int(1_000 * scale)))
        expect(Client(port, quiet).send("POST", "/threads/quiet/checkpoints", {"state": {"a": 1}}), 200)
        cases = {}
        with Asking(ASKING, str(port), quiet) as asking, Asking(READING, own) as reading:
            time.sleep(IDLE_S)
            idle = asking.longest()
            wanted = {key: largest.calls[key] for key in in_order(operations())} | more_cases(scale)
            for (method, template), call in wanted.items():
                case = one_case(client, asking, method, template, call, reading=reading)
                print(f"bench: stalls: {method} {template}: {case}", file=sys.stderr, flush=True)
                cases[f"{method} {template}"] = case
    return {"environment": environment(dsn, Peers()), "idle_ms": idle, "scale": scale, "cases": cases}


def one_case(
    client: Client,
    asking: Asking,
    method: str,
    template: str,
    call: Call,
    least_s: float = LEAST_S,
    reading: Asking | None = None,
) -> dict[str, Any]:
    """Return the longest waits during one request and during several, and the status of the answers."""
    waits, statuses, took = [], [], 0.0
    for count in (1, AT_ONCE):
        path = prepared(client, call)
        gc.collect()
        asking.longest()
        if reading is not None:
            reading.longest()
        begin = time.perf_counter()
        with ThreadPoolExecutor(count) as pool:
            sent = [pool.submit(client.send, method, path, call.body, page=is_page(template)) for _ in range(count)]
            statuses = [one.result()[0] for one in sent]
        if count == 1:
            took = time.perf_counter() - begin
        time.sleep(max(0.0, least_s - (time.perf_counter() - begin)))
        waits.append(asking.longest())
    case = {"one_ms": waits[0], "many_ms": waits[1], "took_s": took, "answers": sorted(set(statuses))}
    return case if reading is None else {**case, "mysql_ms": reading.longest()}


def prepared(client: Client, call: Call) -> str:
    """Send the preceding request, if any; return the request's path."""
    answer = b""
    for method, path, body in call.before:
        answer = client.send(method, path, body)[2]
    if "CHECKPOINT" not in call.path:
        return call.path
    made = json.loads(answer).get("checkpoint_id", "none") if answer else "none"
    return call.path.replace("CHECKPOINT", made)


@contextmanager
def two_tenants(dsn: str, *arguments: str) -> Iterator[tuple[int, str, str]]:
    """Start a service with two tenants; yield its port, and the token of each."""
    noisy, quiet = new_token("noisy", "noisy", "write"), new_token("quiet", "quiet", "write")
    with tempfile.TemporaryDirectory() as folder:
        (tokens := Path(folder, "tokens.toml")).write_text(noisy.entry + quiet.entry)
        log = Path(folder, "log")
        command = ["-m", "locus_mysql", "serve", "--dsn", f"{dsn}?driver={DRIVER}", "--port", "0", "--quiet"]
        command += ["--tokens", str(tokens), "--allow-writes", "--vacuum", *arguments]
        with log.open("w") as output:
            process = subprocess.Popen([sys.executable, *command], stderr=output)
        try:
            yield _port_of(process, log), noisy.secret, quiet.secret
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(WAIT_S)
            process.kill()
            process.wait()
            sys.stderr.write(log.read_text()[-3_000:])


def longest(result: dict[str, Any], at_once: str) -> float:
    """Return the longest wait during any operation in milliseconds, for one request at a time or several."""
    return max(float(case[at_once]) for case in result["cases"].values())


def table(result: dict[str, Any]) -> str:
    """Return a table with a row for each operation."""
    rows = [
        [
            name.replace("|", "\\|"),
            f"{case['one_ms']:.0f}",
            f"{case['many_ms']:.0f}",
            f"{case['mysql_ms']:.0f}",
            f"{case['took_s']:.2f}",
            ", ".join(map(str, case["answers"])),
        ]
        for name, case in result["cases"].items()
    ]
    worst = max(longest(result, at_once) for at_once in ("one_ms", "many_ms"))
    about = " ".join((__doc__ or "").split("\n\n", 1)[1].split())
    summary = f"Idle: {result['idle_ms']:.0f} ms. The longest wait of the small tenant: {worst:.0f} ms."
    heading = ["operation", "wait, one, ms", f"wait, {AT_ONCE}, ms", "MySQL alone, ms", "one takes, s", "answers"]
    return "\n\n".join([about, summary, markdown_table(heading, rows)])
