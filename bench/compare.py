"""Compares this tree with an earlier commit, in turn on the same server: finds a few per cent more processor time.

    python -m bench.compare --dsn mysql://user:password@host:port/database [COMMIT]

By default, the commit is the last one that changed ``bench/accepted.json``. Both versions of the package run the same
workloads in short rounds, in processes of their own. One process may be slower than the next from its start to its
end, so both are started several times. The table shows the ratio of this tree to the commit: the median of all rounds,
with the quartiles. Processor time of the server is that of the threads of its connections; what it flushes and purges
in the background falls into any round. While the ratio of the processor time of a workload, client and server
together, is above `LIMIT`, another pass adds rounds, three passes at most. The exit code is 1 if it is above the limit
after them; 2 if the commit, or a server on this machine, cannot be had.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .database import fresh_database
from .disk import administrator
from .markdown import markdown_table

ROOT = Path(__file__).parent.parent
PACKAGES = ROOT / ".cache/compared"

#: Number of times that both processes are started in a pass, and rounds of each workload after each start.
STARTS, ROUNDS, WARM_UP_ROUNDS = 6, 10, 3
#: The ratio of processor time above which the comparison fails.
LIMIT = 1.04
#: Maximum number of passes.
PASSES = 3
JUDGED = "client and server"
PARTS = ("clock", "client", "server", JUDGED)


THREADS = """
SELECT THREAD_OS_ID
  FROM performance_schema.threads
 WHERE PROCESSLIST_DB = DATABASE() AND PROCESSLIST_ID <> CONNECTION_ID()
"""


class CannotCompareError(Exception):
    """The commit to compare with, or the server's processor time, cannot be had."""


class Connections:
    """The connections to one database, on a server of this machine.

    Args:
        cursor: A cursor of the administrator in this database.
    """

    def __init__(self, cursor: Any) -> None:
        """Find the server's process.

        Raises:
            CannotCompareError: It does not run here, or its pid file cannot be read.
        """
        self._cursor = cursor
        cursor.execute("SELECT @@pid_file")
        ((path,),) = cursor.fetchall()
        try:
            self._tasks = Path("/proc", Path(path).read_text().strip(), "task")
        except OSError as error:
            raise CannotCompareError(
                "The comparison reads the processor time of the server's threads, so the server must run on this "
                f"machine, with a pid file that this user may read: {error}"
            ) from None

    def threads(self) -> list[Path]:
        """Return the folders of the server's threads that serve them, except the cursor's own."""
        self._cursor.execute(THREADS)
        return [self._tasks / str(thread) for (thread,) in self._cursor.fetchall()]


def processor_s(threads: Iterable[Path]) -> float:
    """Return the processor time of threads in seconds."""
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


class Worker:
    """A process that runs workloads with one version of the package.

    Args:
        root: The folder that holds the package.
        dsn: Its database.
        connections: The connections to its database.
    """

    def __init__(self, root: Path, dsn: str, connections: Connections) -> None:
        self._connections = connections
        path = os.pathsep.join(map(str, (root, ROOT)))
        command = [sys.executable, "-P", "-m", "bench.compare_worker", dsn]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        begun = self._answer()
        if Path(begun["package"]) != root / "locus_mysql":
            raise RuntimeError(f"The process imported {begun['package']}, not the package in {root}.")
        self.workloads: list[str] = begun["workloads"]

    def run(self, workload: str) -> dict[str, float]:
        """Run one round; return the seconds of each of `PARTS`."""
        assert self.process.stdin is not None
        threads = self._connections.threads()
        began = processor_s(threads)
        print(workload, file=self.process.stdin, flush=True)
        measured: dict[str, float] = self._answer()
        measured["server"] = processor_s(threads) - began
        return {**measured, JUDGED: measured["client"] + measured["server"]}

    def close(self) -> None:
        """End the process."""
        self.process.communicate()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"A process of the comparison ended with {self.process.wait()}; see above.")
        return json.loads(line)


def package_of(commit: str) -> tuple[str, Path]:
    """Return a commit's hash, and a folder with its package.

    Raises:
        CannotCompareError: There is no history, or it does not reach back to the commit.
    """
    found = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").decode().strip()
    folder = PACKAGES / found
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(_git("archive", found, "locus_mysql"))) as archive:
        archive.extractall(folder, filter="data")
    return found, folder


def accepted_commit() -> str:
    """Return the last commit that changed the accepted figures.

    Raises:
        CannotCompareError: There is no history, or it does not reach back to the commit.
    """
    if _git("rev-parse", "--is-shallow-repository").strip() == b"true":
        raise CannotCompareError(
            "This is a shallow clone, whose first commit seems to change every file. "
            "Fetch the history: git fetch --unshallow"
        )
    return _git("log", "-1", "--format=%H", "--", "bench/accepted.json").decode().strip()


def _git(*arguments: str) -> bytes:
    try:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True).stdout
    except FileNotFoundError:
        raise CannotCompareError("git is not installed.") from None
    except subprocess.CalledProcessError as error:
        commit = arguments[-1].removesuffix("^{commit}")
        raise CannotCompareError(error.stderr.decode().strip() or f"There is no commit {commit}.") from None


def compare(
    dsn: str, before: Path, after: Path = ROOT, starts: int = STARTS, rounds: int = ROUNDS
) -> dict[str, dict[str, list[float]]]:
    """Return the ratios of one tree to another one, by workload and part, one of each round."""
    ratios: dict[str, dict[str, list[float]]] = {}
    source = random.Random(7)
    for _ in range(starts):
        with ExitStack() as stack:
            old, new = (stack.enter_context(_worker(root, dsn)) for root in (before, after))
            for number in range(-WARM_UP_ROUNDS, rounds):
                for workload in new.workloads:
                    measured = {worker: worker.run(workload) for worker in source.sample((old, new), 2)}
                    for part in PARTS if number >= 0 else ():
                        ratio = measured[new][part] / measured[old][part]
                        ratios.setdefault(workload, {}).setdefault(part, []).append(ratio)
    return ratios


@contextmanager
def _worker(root: Path, dsn: str) -> Iterator[Worker]:
    with fresh_database(dsn) as own, administrator(own) as cursor:
        worker = Worker(root, own, Connections(cursor))
        try:
            yield worker
        finally:
            worker.close()


def table(ratios: dict[str, dict[str, list[float]]]) -> str:
    """Return the ratios as a table."""
    rows = [[name, *(_shown(parts[part]) for part in PARTS)] for name, parts in ratios.items()]
    return markdown_table(["this tree / the commit", *PARTS], rows)


def _shown(ratios: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} ({low:.2f}-{high:.2f})"


def slower(ratios: dict[str, dict[str, list[float]]]) -> list[str]:
    """Return the workloads whose processor time is above the limit."""
    return [name for name, parts in ratios.items() if statistics.median(parts[JUDGED]) > LIMIT]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--starts", type=int, default=STARTS, help=f"starts of both processes; {STARTS} by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds after each start; {ROUNDS} by default")
    parser.add_argument("commit", nargs="?", help="a commit, tag or branch")
    chosen = parser.parse_args(arguments)
    if chosen.starts < 1 or chosen.rounds < 2:
        parser.error("--starts must be at least 1, and --rounds at least 2")
    try:
        return _compare_with(chosen.commit, chosen.dsn, chosen.starts, chosen.rounds)
    except CannotCompareError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2


def _compare_with(named: str | None, dsn: str, starts: int, rounds: int) -> int:
    commit, before = package_of(named or accepted_commit())
    print(f"compare: with {commit[:12]}", file=sys.stderr, flush=True)
    ratios: dict[str, dict[str, list[float]]] = {}
    for number in range(PASSES):
        for name, parts in compare(dsn, before, starts=starts, rounds=rounds).items():
            for part, found in parts.items():
                ratios.setdefault(name, {}).setdefault(part, []).extend(found)
        print(f"{number + 1} of at most {PASSES} passes\n\n{table(ratios)}\n", flush=True)
        worse = slower(ratios)
        if not worse:
            return 0
    print(f"More than {LIMIT} times the processor time: {'; '.join(worse)}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
