"""The inspector's pages with a thousand threads and with a million: the time of each.

Each thread has two checkpoints of a short conversation; threads were saved at random times within 60 days. A page has
50 threads. A "deep" page begins after half of the threads. While a user types, each further letter starts a search for
ids that begin with the letters, or contain them. The time is that of the call, in this process and the server, on the
same machine.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from locus_mysql import CheckpointStore, MySQLConfig
from locus_mysql.families.inspection.sources import to_cursor
from locus_mysql.inspection.inspector import Inspector

from .agents import prose
from .database import fresh_database
from .disk import administrator
from .environment import environment
from .fill import PAIR_KEY
from .markdown import markdown_table
from .peers import Peers
from .scale import enlarge, enlarged, restore
from .seals import moved_payload, row_seal

#: Name of this measurement's own page.
PAGE = "inspection"

SIZES, QUICK_SIZES = (1_000, 1_000_000), (1_000, 5_000)
ROUNDS, QUICK_ROUNDS, WARM_UP_ROUNDS = 40, 5, 3
#: An operation that takes longer is measured in fewer rounds.
SECONDS_PER_OPERATION = 15
#: Number of threads that the package saves; the server copies them.
PROTOTYPES, CHECKPOINTS_PER_THREAD, ROWS_PER_INSERT = 20, 2, 20_000
#: Number of users; each has the same share of the threads.
USERS = 1_000
DAYS = 60
PERCENTILES = (50, 95)

#: A call of an inspector, with the number of threads and a random generator.
Call = Callable[[Inspector, int, random.Random], Awaitable[Any]]


def some_thread(size: int, source: random.Random) -> str:
    """Return the id of a random thread."""
    number = source.randrange(size)
    return f"user-{number % USERS:04}/thread-{number:07}"


def typed(text: str) -> list[str]:
    """Return the text typed so far, from half of the letters to all of them."""
    return [text[:end] for end in range(len(text) // 2, len(text) + 1)]


def deep() -> str:
    """Return a cursor after half of the threads."""
    return to_cursor(datetime.now(UTC) - timedelta(days=DAYS / 2), "user")


OPERATIONS: dict[str, Call] = {
    "page of threads, the first": lambda i, n, s: i.threads("dicts"),
    "page of threads, deep": lambda i, n, s: i.threads("dicts", cursor=deep()),
    "threads of a day": lambda i, n, s: i.threads(
        "dicts",
        saved_after=datetime.now(UTC) - timedelta(days=DAYS / 2 + 1),
        saved_before=datetime.now(UTC) - timedelta(days=DAYS / 2),
    ),
    "typed: the beginning of an id": lambda i, n, s: i.threads(
        "dicts", pattern=s.choice(typed(some_thread(n, s))) + "*"
    ),
    "typed: a part of an id": lambda i, n, s: i.threads("dicts", pattern=f"*{s.choice(typed(some_thread(n, s)))[5:]}*"),
    "by metadata, one in a thousand": lambda i, n, s: i.threads("dicts", metadata=("user", s.randrange(USERS))),
    "by metadata, every second": lambda i, n, s: i.threads("dicts", metadata=("channel", "mail")),
    "by metadata, none": lambda i, n, s: i.threads("dicts", metadata=("user", "nobody")),
    "by size, none": lambda i, n, s: i.threads("dicts", min_bytes=10_000_000),
    "one thread": lambda i, n, s: i.thread("dicts", some_thread(n, s)),
    "history": lambda i, n, s: i.history("dicts", some_thread(n, s)),
    "state": lambda i, n, s: i.state("dicts", some_thread(n, s)),
    "changed, of 100 threads": lambda i, n, s: i.changed([("dicts", some_thread(n, s)) for _ in range(100)]),
    "checkpoints by metadata": lambda i, n, s: i.by_metadata("user", s.randrange(USERS), family="dicts"),
    "statistics": lambda i, n, s: i.statistics("dicts"),
}


#: The operations that show pages of threads, which users expect immediately.
PAGES = tuple(name for name in OPERATIONS if name.startswith(("page", "threads", "typed", "by")))


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure the milliseconds of each operation at each size, the sizes in turns."""
    sizes = QUICK_SIZES if quick else SIZES
    settings = enlarge(dsn)
    try:
        with fresh_database(dsn) as own:
            configs = {size: MySQLConfig(dsn=own, table_prefix=f"i{size}_", search=False) for size in sizes}
            filled_in_s = {}
            for size, config in configs.items():
                begin = time.perf_counter()
                fill(config, own, size, _say)
                filled_in_s[str(size)] = time.perf_counter() - begin
            timed = asyncio.run(_measure(configs, QUICK_ROUNDS if quick else ROUNDS))
            measured_with = environment(dsn, Peers())
            return {
                "environment": measured_with,
                "settings": enlarged(dsn),
                "filled_in_s": filled_in_s,
                "operations": timed,
            }
    finally:
        restore(dsn, settings)


async def _measure(configs: dict[int, MySQLConfig], rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return percentiles by operation and size."""
    inspectors = {size: Inspector(config) for size, config in configs.items()}
    measured = {}
    for name, call in OPERATIONS.items():
        times: dict[int, list[float]] = {size: [] for size in inspectors}
        source, began = random.Random(2), time.perf_counter()
        for number in range(rounds + WARM_UP_ROUNDS):
            if number > WARM_UP_ROUNDS + 2 and time.perf_counter() - began > SECONDS_PER_OPERATION:
                break
            for size, inspector in inspectors.items():
                begin = time.perf_counter()
                await call(inspector, size, source)
                if number >= WARM_UP_ROUNDS:
                    times[size].append((time.perf_counter() - begin) * 1_000)
        measured[name] = {str(size): _percentiles(one) for size, one in times.items()}
        _say(f"{name}: {measured[name]}")
    for inspector in inspectors.values():
        await inspector.close()
    return measured


def _percentiles(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {f"p{at}": cuts[at - 1] for at in PERCENTILES}


def table(result: dict[str, Any]) -> str:
    """Return a table with operations in rows and sizes in columns."""
    sizes = list(result["filled_in_s"])
    rows = [
        [
            name,
            *(" / ".join(f"{measured[size][f'p{at}']:.1f}" for at in PERCENTILES) for size in sizes),
            f"{measured[sizes[-1]]['p50'] / measured[sizes[0]]['p50']:.1f}",
        ]
        for name, measured in result["operations"].items()
    ]
    headings = ["p50 / p95 in ms, by number of threads", *(f"{int(size):,}" for size in sizes), "p50, most to least"]
    parts = [" ".join((__doc__ or "").split("\n\n", 1)[1].split()), markdown_table(headings, rows)]
    filled = ", ".join(f"{int(size):,} threads in {seconds:.0f} s" for size, seconds in result["filled_in_s"].items())
    return "\n\n".join([*parts, f"The tables were filled with {filled}."])


def _say(message: str) -> None:
    print(f"bench: inspection, {message}", file=sys.stderr, flush=True)


async def save_prototypes(config: MySQLConfig) -> None:
    """Save the threads that the server copies."""
    source = random.Random(1)
    async with CheckpointStore(config) as store:
        for number in range(PROTOTYPES):
            messages: list[dict[str, str]] = []
            for turn in range(CHECKPOINTS_PER_THREAD):
                messages.append({"role": "user", "content": prose(source, 12)})
                await store.save(
                    f"prototype-{number}", {"messages": list(messages), "iteration": turn}, metadata={"turn": turn}
                )


def fill(config: MySQLConfig, dsn: str, threads: int, progress: Callable[[str], None] = lambda _: None) -> None:
    """Create the tables of a configuration and fill them with threads.

    Args:
        config: Names the tables. Search is off: no operation here needs it, and its index takes long to fill.
        dsn: The same database.
        threads: Number of threads.
        progress: Called with messages about the progress.
    """
    asyncio.run(save_prototypes(config))
    names = {role: f"`{config.table_prefix}store_{role}`" for role in ("threads", "checkpoints")}
    # The number of a thread determines its user, channel and time.
    thread_id = f"CONCAT('user-', LPAD(n %% {USERS}, 4, '0'), '/thread-', LPAD(n, 7, '0'))"
    saved_at = f"(UTC_TIMESTAMP(6) - INTERVAL (CRC32(n) %% {DAYS * 86_400}) SECOND)"
    user, channel = f"n %% {USERS}", "IF(n %% 2, 'mail', 'telephone')"
    keys = (
        PAIR_KEY.format(name="'user'", value=user),
        PAIR_KEY.format(name="'channel'", value=f"JSON_QUOTE({channel})"),
    )
    replaced = {
        "tenant": "o.tenant",
        "thread_id": thread_id,
        "created_at": f"{saved_at} - INTERVAL 1 MINUTE",
        "updated_at": saved_at,
        "payload": moved_payload("o", thread_id),
        "metadata": f"JSON_OBJECT('user', {user}, 'channel', {channel})",
        "metadata_keys": f"JSON_ARRAY(LEAST({keys[0]}, {keys[1]}), GREATEST({keys[0]}, {keys[1]}))",
    }
    with administrator(dsn) as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0, cte_max_recursion_depth = 10000000")
        for name in names.values():
            cursor.execute(
                "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()"
                " AND CONCAT('`', TABLE_NAME, '`') = %s AND GENERATION_EXPRESSION = '' ORDER BY ORDINAL_POSITION",
                (name,),
            )
            columns = [column for (column,) in cursor.fetchall()]
            values = ", ".join(replaced.get(column, f"o.`{column}`") for column in columns)
            for first in range(0, threads, ROWS_PER_INSERT):
                last = min(first + ROWS_PER_INSERT, threads) - 1
                # In the order of the numbers, a user's threads are far apart, as in real use.
                cursor.execute(
                    f"INSERT INTO {name} ({', '.join(f'`{column}`' for column in columns)})"
                    f" WITH RECURSIVE numbers (n) AS (SELECT %s UNION ALL SELECT n + 1 FROM numbers WHERE n < %s)"
                    f" SELECT {values} FROM numbers"
                    f" JOIN {name} o ON o.tenant = %s AND o.thread_id = CONCAT('prototype-', n %% {PROTOTYPES})",
                    (first, last, config.tenant),
                )
                progress(f"{last + 1:,} of {threads:,} threads in {name}")
        for name in names.values():
            cursor.execute(f"DELETE FROM {name} WHERE tenant = %s AND thread_id LIKE 'prototype-%%'", (config.tenant,))
        cursor.execute(
            f"UPDATE {names['checkpoints']} c SET c.seal = {row_seal('c')} WHERE c.checkpoint_id IS NOT NULL"
        )
        cursor.execute(f"ANALYZE TABLE {', '.join(names.values())}")
