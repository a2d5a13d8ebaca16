"""Make mutants of the package, one at a time, and say which ones the tests do not notice. For a look now and then.

    LOCUS_MYSQL_TEST_DSN=… python -m tests.mutate locus_mysql/checkpoints/memory.py …
    LOCUS_MYSQL_TEST_DSN=… python -m tests.mutate --sample 200 --last 1 locus_mysql/engine/*.py > first
    LOCUS_MYSQL_TEST_DSN=… python -m tests.mutate --survivors first --first 2 locus_mysql/engine/*.py

A mutant differs in one place: a comparison turned round, a condition always or never true, a filter or a statement
left out, a number one higher, a line of SQL's conditions always true. The unit tests are asked first, then tests
with a server. A mutant that runs for too long is noticed as well. Survivors are printed as they are found; not each is
a gap: some differ in speed only, or in nothing.

Mutants are made in memory: each runs in a fork of this process, which has imported the libraries that take long.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.abc
import importlib.util
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: Asked one after the other, of one side where there are many.
STAGES: tuple[tuple[str, ...], ...] = (
    (
        "tests/unit/checkpoints/test_memory.py",
        "tests/unit/checkpoints/test_operations.py",
        "tests/unit/engine",
        "-k",
        "not fork",
    ),
    ("tests/integration/checkpoints/test_store.py", "-k", "pymysql-sync"),
    ("tests/integration/interleavings/test_found.py", "-k", "pymysql-sync"),
    ("tests/unit/checkpoints", "tests/unit/dialect"),
    ("tests/integration/checkpoints", "tests/integration/interleavings", "-k", "pymysql-sync"),
    ("tests/integration/test_state_machine.py", "tests/integration/test_round_trips.py"),
    ("tests/faults/test_every_fault.py", "tests/integration/test_bad_days.py", "-k", "not fork"),
)

#: A mutant that takes so many times as long as the package does as it is, and some seconds, is noticed.
PATIENCE, PATIENCE_S = 3, 20

#: A condition of SQL that has a line to itself.
_CONDITION = re.compile(r"^ *(?:WHERE|AND) (.+)$", re.MULTILINE)

#: A condition without which a statement would be of all threads.
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
        start: Where the text begins that is changed, in characters.
        end: Where it ends.
        text: What stands there instead.
        what: What is changed.
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
        return ast.get_source_segment(source, node) or ""

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
            if not _PLACE.fullmatch(condition):  # placeholders stay, or the statement would not be sent
                begin, end = start + position, start + position + len(condition)
                yield Mutant(path, begin, end, f"({condition} OR TRUE)", "condition of SQL")
            position += len(condition) + len(" AND ")


def _parts(conditions: str) -> list[str]:
    """Conditions that AND joins; none if a bracket is closed on another line."""
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


def outcome(mutant: Mutant, tests: tuple[str, ...], limit_s: float) -> str:
    """What tests say of a mutant, in a fork of this process."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            os.setsid()  # what it starts ends with it
            silence = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(silence, descriptor)
            sys.meta_path.insert(0, MutatedModule(mutant))
            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", *tests])
        os._exit(int(code))
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "SURVIVED" if os.waitstatus_to_exitcode(status) == 0 else "noticed"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "took too long"


def ask(mutant: Mutant, stages: Sequence[tuple[tuple[str, ...], float]]) -> str:
    """What the first stage says that notices a mutant, and its number among those that are asked."""
    for number, (tests, limit_s) in enumerate(stages, start=1):
        found = outcome(mutant, tests, limit_s)
        if found != "SURVIVED":
            return f"{found} by {number}"
    return "SURVIVED"


def main() -> int:
    """Carry out the command line."""
    parser = argparse.ArgumentParser(description="Say which mutants the tests do not notice.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, help="so many of all mutants, chosen by chance but the same each time")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--first", type=int, default=1, help="the first stage of tests to ask")
    parser.add_argument("--last", type=int, default=len(STAGES), help="the last one")
    parser.add_argument("--survivors", type=Path, help="only those that survived, in the output of a run before")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    mutants = [mutant for path in arguments.files for mutant in mutants_of(path.resolve())]
    if arguments.survivors is not None:
        lines = [line for line in arguments.survivors.read_text(encoding="utf-8").splitlines() if "SURVIVED" in line]
        mutants = [mutant for mutant in mutants if any(line.endswith(str(mutant)) for line in lines)]
    stages = STAGES[arguments.first - 1 : arguments.last]
    if arguments.sample is not None and arguments.sample < len(mutants):
        mutants = random.Random(0).sample(mutants, arguments.sample)
    if arguments.list:
        print(*mutants, sep="\n")
        return 0
    for library in ("locus.agent", "pymysql", "mysql.connector.aio"):
        importlib.import_module(library)
    assert not any(name.startswith("locus_mysql.") for name in sys.modules), "the package is imported already"
    unchanged = Mutant(Path(__file__).resolve(), 0, 0, "", "nothing")
    limits = []
    for tests in stages:
        began = time.monotonic()
        if outcome(unchanged, tests, 600) != "SURVIVED":
            print(f"These fail as it is: {' '.join(tests)}")
            return 1
        limits.append(PATIENCE * (time.monotonic() - began) + PATIENCE_S)
        print(f"{time.monotonic() - began:.0f} s: {' '.join(tests)}", flush=True)
    asked = list(zip(stages, limits, strict=True))
    found: Counter[str] = Counter()
    with ThreadPoolExecutor(arguments.processes) as processes:
        outcomes = processes.map(lambda mutant: ask(mutant, asked), mutants)
        for number, (mutant, said) in enumerate(zip(mutants, outcomes, strict=True), start=1):
            found[said] += 1
            print(f"{number}/{len(mutants)} {said:16} {mutant}", flush=True)
    print(f"{len(mutants)} mutants: {', '.join(f'{number} {said}' for said, number in sorted(found.items()))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
