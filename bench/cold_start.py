"""Time of a fresh process until its first save, step by step: import, connect, save."""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from . import contestants
from .database import fresh_database
from .markdown import markdown_table
from .states import agent_state

RUNS = 15
MESSAGES = 10

OURS = "locus-mysql, {driver}"
IMPORT_ALONE = {
    "import pydantic": "import pydantic",
    "import locus_mysql": "import locus_mysql",
    "import locus.core.state": "import locus.core.state",
}

# The program of a fresh process: it times each step and prints the milliseconds. It reads and decodes the state before
# it starts to time the save. The tables exist, as they do for most processes.
STEPS = """\
import asyncio, json, sys, time
begin = time.perf_counter()
{importing}
imported = time.perf_counter()
from locus.core.state import AgentState
state = AgentState.from_checkpoint(json.load(open(sys.argv[2])))

async def main():
    made = time.perf_counter()
    checkpointer = {making}
    await checkpointer.load("nobody")
    connected = time.perf_counter()
    await checkpointer.save(state, sys.argv[3])
    saved = time.perf_counter()
    await checkpointer.close()
    print(json.dumps({{
        "import": (imported - begin) * 1000,
        "connect": (connected - made) * 1000,
        "first save": (saved - connected) * 1000,
    }}))

asyncio.run(main())
"""

CONTESTANTS = {
    **{
        OURS.format(driver=driver): STEPS.format(
            importing="from locus_mysql import mysql_checkpointer",
            making=f"mysql_checkpointer(dsn=sys.argv[1], driver={driver!r})",
        )
        for driver in contestants.DRIVERS
    },
    contestants.BUILT_IN: STEPS.format(
        importing="from locus.memory.backends import mysql_checkpointer",
        making="mysql_checkpointer(dsn=sys.argv[1])",
    ),
}


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Start processes of each contestant in turn; ``quick``: three of each."""
    runs = 3 if quick else RUNS
    source = random.Random(6)
    steps: dict[str, list[dict[str, float]]] = {name: [] for name in CONTESTANTS}
    alone: dict[str, list[float]] = {name: [] for name in IMPORT_ALONE}
    state = asyncio.run(agent_state(MESSAGES))
    print("bench: cold start", file=sys.stderr, flush=True)
    with fresh_database(dsn) as own, tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps(state.to_checkpoint()))
        file.flush()
        for number in range(-1, runs):  # the first one creates the tables and fills the file cache
            order = [*CONTESTANTS, *IMPORT_ALONE]
            source.shuffle(order)
            for name in order:
                if name in IMPORT_ALONE:
                    taken = float(_run(TIMED_IMPORT.format(importing=IMPORT_ALONE[name])))
                    if number >= 0:
                        alone[name].append(taken)
                    continue
                begin = time.perf_counter()
                times = json.loads(_run(CONTESTANTS[name], own, file.name, f"{name}/{number}"))
                times["whole process"] = (time.perf_counter() - begin) * 1000
                if number >= 0:
                    steps[name].append(times)
    return {
        "runs": runs,
        "steps_ms": {
            name: {step: statistics.median(run[step] for run in measured) for step in measured[0]}
            for name, measured in steps.items()
        },
        "import_alone_ms": {name: statistics.median(taken) for name, taken in alone.items()},
    }


TIMED_IMPORT = """\
import time
begin = time.perf_counter()
{importing}
print((time.perf_counter() - begin) * 1000)
"""


def _run(program: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout


def table(result: dict[str, Any]) -> str:
    """Return a table with the median of each step."""
    steps = result["steps_ms"]
    names = list(next(iter(steps.values())))
    rows = [[name, *(f"{one[step]:.1f}" for step in names)] for name, one in steps.items()]
    alone = [[name, f"{taken:.1f}"] for name, taken in result["import_alone_ms"].items()]
    return "\n\n".join(
        [
            f"Medians of {result['runs']} fresh processes of each kind, by turns. The import brings Locus and pydantic "
            "as well; connecting includes one read and looking at the tables, which exist.",
            markdown_table(["ms", *names], rows),
            markdown_table(["import alone", "ms"], alone),
        ]
    )
