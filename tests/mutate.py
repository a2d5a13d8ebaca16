"""Mutation testing: make mutants of the package, one at a time, and report those that no test detects.

    python -m tests.mutate --record tests/unit/engine                  # once, and after tests have changed
    LOCUS_MYSQL_TEST_DSN=… python -m tests.mutate --record tests/integration/families/checkpoints …
    LOCUS_MYSQL_TEST_DSN=… python -m tests.mutate --tests tests/unit locus_mysql/engine/*.py > first
    LOCUS_MYSQL_TEST_DSN=… python -m tests.mutate --survivors first --budget 200 locus_mysql/engine/*.py

A mutant differs in one place: an inverted comparison, a condition that is always or never true, a missing filter or
statement, an incremented number, a line of SQL's conditions that is always true. The recorded tests that execute the
changed lines run, the quickest first: an order of magnitude fewer than all. A test that runs for too long detects the
mutant as well. Survivors are printed at once. Not every one is a gap: some differ in speed only, or not at all.

Mutants are made in memory: each runs in a fork of a process that has collected all tests; the fork replaces the code of
the changed functions. If a mutant differs outside of functions, its module is imported again.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import importlib.abc
import importlib.util
import inspect
import json
import os
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import pytest

#: The location of a function: its file, its name and its first line.
Place: TypeAlias = tuple[str, str, int]

ROOT = Path(__file__).resolve().parent.parent

#: The record of the tests: the duration of each, and the lines that it executes.
RECORD = ROOT / ".cache/mutate.json"

#: The file of that record.
WATCHED = ("locus_mysql/families/checkpoints/", "locus_mysql/engine/")

OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "--no-header", "--tb=no")

#: Reported by a fork that could not replace the code of functions.
ELSEWHERE = "elsewhere"

#: A test detects a mutant by its duration too: this many times the usual one, plus some seconds.
PATIENCE, PATIENCE_S = 4, 8

#: A condition of SQL that has a line to itself.
_CONDITION = re.compile(r"^ *(?:WHERE|AND) (.+)$", re.MULTILINE)

#: A condition that limits a statement to a thread.
_PLACE = re.compile(r"(\w+\.)?(tenant|thread_id) = (%s|\w+\.(tenant|thread_id))")

_TURNED = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a file.

    Args:
        path: The file.
        start: The beginning of the changed text, in characters.
        end: Its end.
        text: The replacement.
        what: A description of the change.
    """

    path: Path
    start: int
    end: int
    text: str
    what: str

    @property
    def module(self) -> str:
        """The module's name."""
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts)

    def source(self) -> str:
        """The file with the change."""
        before = self.path.read_text(encoding="utf-8")
        return before[: self.start] + self.text + before[self.end :]

    def __str__(self) -> str:
        before = self.path.read_text(encoding="utf-8")
        line = before.count("\n", 0, self.start) + 1
        old = " ".join(before[self.start : self.end].split())
        return f"{self.path.relative_to(ROOT)}:{line}: {self.what}: {old[:90]!r} -> {self.text[:60]!r}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    source = path.read_text(encoding="utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:  # columns count bytes
        text = source[starts[line - 1] : starts[line]]
        return starts[line - 1] + len(text.encode()[:column].decode())

    def change(node: Any, text: str, what: str) -> Mutant:
        start, end = place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)
        return Mutant(path, start, end, text, what)

    def shown(node: ast.AST) -> str:
        text = ast.get_source_segment(source, node) or ""
        return f"({text})" if isinstance(node, ast.NamedExpr) else text

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            turned = _TURNED[type(node.ops[0])]
            yield change(node, f"{shown(node.left)} {turned} {shown(node.comparators[0])}", "comparison")
        elif isinstance(node, ast.BoolOp):
            joint = " or " if isinstance(node.op, ast.And) else " and "
            yield change(node, f"({joint.join(f'({shown(value)})' for value in node.values)})", "and, or")
            for left_out in node.values:
                rest = [f"({shown(value)})" for value in node.values if value is not left_out]
                word = " and " if isinstance(node.op, ast.And) else " or "
                yield change(node, f"({word.join(rest)})", "operand left out")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield change(node, f"({shown(node.operand)})", "not left out")
        elif isinstance(node, ast.If | ast.IfExp):
            for value in ("True", "False"):
                yield change(node.test, value, "condition")
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield change(test, "True", "filter")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield change(node, str(not node.value), "constant")
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield change(node, str(node.value + 1), "constant")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.YieldFrom):
            yield change(node, "pass", "statement left out")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _CONDITION.search(node.value):
            yield from _without_conditions(path, place(node.lineno, node.col_offset), shown(node))


def _without_conditions(path: Path, start: int, text: str) -> Iterator[Mutant]:
    for found in _CONDITION.finditer(text):
        position = found.start(1)
        for condition in _parts(found[1]):
            if not _PLACE.fullmatch(condition):  # placeholders stay, as the statement could not be sent without them
                begin, end = start + position, start + position + len(condition)
                yield Mutant(path, begin, end, f"({condition} OR TRUE)", "condition of SQL")
            position += len(condition) + len(" AND ")


def _parts(conditions: str) -> list[str]:
    """Return the conditions that AND joins; none if a bracket closes on another line."""
    parts = [""]
    for part in conditions.split(" AND "):
        parts[-1] += part
        if parts[-1].count("(") == parts[-1].count(")"):
            parts.append("")
        else:
            parts[-1] += " AND "
    return parts[:-1] if not parts[-1] else []


class MutatedModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a mutant's source."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, self._mutant.path, loader=self)

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        exec(compile(self._mutant.source(), str(self._mutant.path), "exec"), module.__dict__)


@functools.cache
def changed_code(mutant: Mutant) -> dict[Place, CodeType] | None:
    """Return the functions of a mutant's file that differ; None if it differs outside of functions too."""
    path = str(mutant.path)
    changed: dict[Place, CodeType] = {}

    def compare(old: CodeType, new: CodeType) -> bool:
        old_inner, new_inner = _inner(old), _inner(new)
        if [code.co_name for code in old_inner] != [code.co_name for code in new_inner]:
            return False
        if not old.co_flags & inspect.CO_OPTIMIZED:  # of a module or a class: it has been executed already
            if (old.co_code, old.co_names, _plain(old)) != (new.co_code, new.co_names, _plain(new)):
                return False
        elif old != new:
            changed[(path, old.co_qualname, old.co_firstlineno)] = new
        return all(map(compare, old_inner, new_inner))

    return changed if compare(_compiled(mutant.path), compile(mutant.source(), path, "exec")) else None


@functools.cache
def _compiled(path: Path) -> CodeType:
    return compile(path.read_text(encoding="utf-8"), str(path), "exec")


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _plain(code: CodeType) -> list[Any]:
    return [(type(one), one) for one in code.co_consts if not isinstance(one, CodeType)]


def functions_of_package() -> dict[Place, list[FunctionType]]:
    """Return every function of the package by its location."""
    found: dict[Place, list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(f"{ROOT}/locus_mysql/"):
            code = one.__code__
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(one)
    return found


class Chosen:
    """A pytest plugin that collects only tests used for mutants."""

    def __init__(self, only: Sequence[str] | None = None) -> None:
        self._only = None if only is None else {name: number for number, name in enumerate(only)}

    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings  # after pytest, which rewrites its assertions

        phases = (Phase.explicit, Phase.generate)  # failing examples need no shrinking
        settings.register_profile("mutants", settings.get_profile("any machine"), phases=phases)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._only is None:
            items[:] = [item for item in items if suits(item)]
        else:
            items[:] = [item for item in items if item.nodeid in self._only]
            items.sort(key=lambda item: self._only[item.nodeid])


def suits(item: pytest.Item) -> bool:
    """Return whether a test is quick enough and no simpler variant of it exists."""
    name = item.nodeid.partition("[")[2]
    other_side = any(other in name for other in ("aiomysql", "asyncmy", "pymysql-async", "mysql-connector-sync"))
    own = "own_server" in getattr(item, "fixturenames", ()) or item.get_closest_marker("slow") is not None
    return not other_side and not own


class Recorder(Chosen):
    """A pytest plugin that records the duration of each test and the lines of the package that it executes."""

    def __init__(self, known: dict[str, Any]) -> None:
        super().__init__()
        self.known = known
        self._lines: dict[str, set[int]] = {}
        self._failed = False
        self._prefix = f"{ROOT}/"

    def _trace(self, frame: Any, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(self._prefix) or not name.startswith(WATCHED, len(self._prefix)):
            return None
        add = self._lines.setdefault(name[len(self._prefix) :], set()).add
        add(frame.f_lineno)

        def line(frame: Any, event: str, argument: Any) -> Any:
            add(frame.f_lineno)
            return line

        return line

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._lines, self._failed = {}, False
        began = time.monotonic()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            if not self._failed:
                lines = {name: sorted(lines) for name, lines in self._lines.items()}
                self.known[item.nodeid] = {"seconds": round(time.monotonic() - began, 3), "lines": lines}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= not report.passed


class Asker(Chosen):
    """A pytest plugin that runs, for each mutant, the collected tests that execute its change."""

    def __init__(self, names: Sequence[str], ask_all: Callable[[Asker], None]) -> None:
        super().__init__(names)
        self._ask_all = ask_all
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[Place, list[FunctionType]] = {}
        self.failed: str | None = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        self.functions = functions_of_package()
        gc.freeze()
        self._ask_all(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed = report.nodeid

    def replace(self, changed: dict[Place, CodeType]) -> bool:
        """Give the package's functions the code of a mutant; return whether that was possible."""
        done = 0
        for place, code in changed.items():
            for function in self.functions.get(place, ()):
                if len(function.__code__.co_freevars) != len(code.co_freevars):
                    return False
                function.__code__ = code
                done += 1
        return done > 0

    def run(self, names: Sequence[str], known: dict[str, Any]) -> str | None:
        """Run tests until one fails, and return its name. A test that exceeds its limit ends the process."""
        items = [self.items[name] for name in names]
        for item, following in zip(items, [*items[1:], None], strict=True):
            signal.setitimer(signal.ITIMER_REAL, PATIENCE * known[item.nodeid]["seconds"] + PATIENCE_S)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return self.failed
        return None


def in_fork(work: Callable[[], str | None]) -> str | None:
    """Return the result of ``work`` in a fork of this process, or a description if the fork crashed or was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        outcome: str | None = "crashed"
        with contextlib.suppress(BaseException):
            os.setsid()  # its child processes end with it
            silence = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(silence, descriptor)
            random.seed()
            outcome = work()
        os.write(writing, (outcome or "").encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        said_so = pipe.read().decode()
    return "took too long" if status else said_so or None


def tests_of(mutant: Mutant, known: dict[str, Any], budget_s: float, noticed: Counter[str]) -> tuple[list[str], int]:
    """Return the tests that execute a mutant's change, and their number without a limit.

    Tests that detected other mutants of the file come first, then the quickest.
    """
    before = mutant.path.read_text(encoding="utf-8")
    first = before.count("\n", 0, mutant.start) + 1
    last = before.count("\n", 0, mutant.end) + 1
    file = str(mutant.path.relative_to(ROOT))
    inside = changed_code(mutant) is not None

    def executes(lines: list[int]) -> bool:
        return any(first <= line <= last for line in lines) if inside else bool(lines)

    names = [name for name, test in known.items() if executes(test["lines"].get(file, []))]
    names.sort(key=lambda name: (-noticed[name], known[name]["seconds"]))
    chosen, seconds = [], 0.0
    for name in names:
        seconds += known[name]["seconds"]
        if seconds > budget_s:
            break
        chosen.append(name)
    return chosen, len(names)


def ask(mutant: Mutant, asker: Asker, known: dict[str, Any], budget_s: float, noticed: Counter[str]) -> str:
    """Run the tests on a mutant, and describe whether they detect it."""
    names, of = tests_of(mutant, known, budget_s, noticed)
    if not names:
        return f"SURVIVED 0 of {of} tests"
    changed = changed_code(mutant)

    def in_place() -> str | None:
        if changed is None or not asker.replace(changed):
            return ELSEWHERE
        return asker.run(names, known)

    def imported() -> str | None:
        for name in [name for name in sys.modules if name.split(".")[0] in ("locus_mysql", "tests")]:
            del sys.modules[name]
        sys.meta_path.insert(0, MutatedModule(mutant))
        files = sorted({name.partition("::")[0] for name in names})
        found: list[str | None] = ["not collected"]

        def run(inner: Asker) -> None:
            missing = [name for name in names if name not in inner.items]
            found[0] = f"not collected: {missing[0]}" if missing else inner.run(names, known)

        signal.setitimer(signal.ITIMER_REAL, 120)
        pytest.main([*OPTIONS, *files], plugins=[Asker(names, run)])
        return found[0]

    outcome = in_fork(in_place)
    if outcome == ELSEWHERE:
        outcome = in_fork(imported)
    if outcome in known:
        noticed[outcome] += 1
    return (
        f"SURVIVED {len(names)} of {of} tests" if outcome is None else f"noticed by {outcome.rpartition('/')[2][:80]}"
    )


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Say which mutants the tests do not notice.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--record", nargs="+", help="run these tests and note what they execute, and do no more")
    parser.add_argument("--tests", default="", help="ask only tests whose name begins so")
    parser.add_argument("--without", help="ask no tests whose name holds this, such as a driver that adds nothing")
    parser.add_argument("--budget", type=float, default=20, help="seconds of tests to run for each mutant")
    parser.add_argument("--sample", type=int, help="number of mutants to sample, the same each time")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--survivors", type=Path, help="only those that survived, in the output of a run before")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    known: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if arguments.record:
        recorder = Recorder({})
        pytest.main([*OPTIONS, *arguments.record], plugins=[recorder])
        known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
        RECORD.write_text(json.dumps({**known, **recorder.known}), encoding="utf-8")
        return 0
    mutants = [mutant for path in arguments.files for mutant in mutants_of(path.resolve())]
    if arguments.survivors is not None:
        lines = [line for line in arguments.survivors.read_text(encoding="utf-8").splitlines() if "SURVIVED" in line]
        mutants = [mutant for mutant in mutants if any(line.endswith(str(mutant)) for line in lines)]
    if arguments.sample is not None and arguments.sample < len(mutants):
        mutants = random.Random(0).sample(mutants, arguments.sample)
    if arguments.list:
        print(*mutants, sep="\n")
        return 0
    known = {
        name: test
        for name, test in known.items()
        if name.startswith(arguments.tests) and not (arguments.without and arguments.without in name)
    }
    changed = {str(mutant.path.relative_to(ROOT)) for mutant in mutants}
    names = [name for name, test in known.items() if changed & test["lines"].keys()]
    output = os.dup(1)

    def ask_all(asker: Asker) -> None:
        found: Counter[str] = Counter()
        noticed = {path: Counter[str]() for path in {mutant.path for mutant in mutants}}
        known_here = {name: test for name, test in known.items() if name in asker.items}
        with (
            os.fdopen(output, "w", encoding="utf-8") as report,
            ThreadPoolExecutor(arguments.processes) as processes,
        ):
            outcomes = processes.map(
                lambda mutant: ask(mutant, asker, known_here, arguments.budget, noticed[mutant.path]), mutants
            )
            for number, (mutant, outcome) in enumerate(zip(mutants, outcomes, strict=True), start=1):
                found[outcome.split()[0]] += 1
                print(f"{number}/{len(mutants)} {outcome}: {mutant}", file=report, flush=True)
            outcome = ", ".join(f"{number} {outcome}" for outcome, number in sorted(found.items()))
            print(f"{len(mutants)} mutants: {outcome}", file=report)

    files = sorted({name.partition("::")[0] for name in names})
    pytest.main([*OPTIONS, *files], plugins=[Asker(names, ask_all)])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
