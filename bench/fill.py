"""Fills tables of any size fast: the package saves a few conversations, and the server copies them.

The copies equal what the package would have written: each has its own metadata under the right index keys, its text in
the full-text index, and its own times. A million checkpoints take two minutes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

import pymysql

from locus_mysql import CheckpointStore, MySQLConfig

from .agents import prose
from .disk import administrator
from .seals import AGENTS, DICTS, moved_payload, row_seal

CHECKPOINTS_PER_THREAD = 10
CONVERSATIONS = 50
ROWS_PER_INSERT = 20_000

#: A pair of metadata and a word that only a few checkpoints have, independently of the size of the table.
RARE_PAIR = ("project", "walrus")
RARE_WORD = "xylophonist"
RARE_CHECKPOINTS = 10

#: Days since the last save of old threads.
DAYS_OLD = 60

CHANNELS = ("mail", "telephone")

#: The key under which the package indexes a pair with this name and value (SQL texts); see `metadata_index`.
PAIR_KEY = "CAST(CONV(LEFT(SHA2(CONCAT('[\"', {name}, '\",', {value}, ']'), 256), 16), 16, 10) AS UNSIGNED)"


async def save_conversations(config: MySQLConfig, first: int, conversations: int, words: int = 12) -> None:
    """Save conversations of a few short messages, each checkpoint with its own channel and ticket."""
    source = random.Random(first)
    async with CheckpointStore(config) as store:
        for number in range(first, first + conversations):
            messages: list[str] = []
            for turn in range(CHECKPOINTS_PER_THREAD):
                messages.append(prose(source, words))
                metadata = {
                    "channel": CHANNELS[turn % len(CHANNELS)],
                    "ticket": number * CHECKPOINTS_PER_THREAD + turn,
                }
                await store.save(f"thread-{number}", {"messages": list(messages)}, metadata=metadata)


async def save_rare(config: MySQLConfig) -> None:
    """Save the few checkpoints that queries search for."""
    async with CheckpointStore(config) as store:
        for number in range(RARE_CHECKPOINTS):
            await store.save(f"rare-{number}", {"messages": [f"met a {RARE_WORD} today"]}, metadata=dict([RARE_PAIR]))
        await store.search(RARE_WORD)  # a search first indexes the text that saves left unindexed


def fill(config: MySQLConfig, dsn: str, checkpoints: int, progress: Callable[[str], None] = lambda _: None) -> None:
    """Fill the tables of a configuration with a number of checkpoints, and `RARE_CHECKPOINTS` more.

    Args:
        config: Names the tables, which do not exist yet.
        dsn: The same database.
        checkpoints: A multiple of the checkpoints in one round of conversations, or less than one round.
        progress: Called with messages about the progress.
    """
    conversations = min(CONVERSATIONS, checkpoints // CHECKPOINTS_PER_THREAD)
    asyncio.run(save_conversations(config, 0, conversations))
    asyncio.run(save_rare(config))
    saved = conversations * CHECKPOINTS_PER_THREAD
    with administrator(dsn) as cursor:
        copier = Copier(cursor, f"{config.table_prefix}store_", "thread-%")
        step = max(1, ROWS_PER_INSERT // saved)
        copies = checkpoints // saved - 1
        for done in range(0, copies, step):
            copier.copy(done + 1, min(done + step, copies))
            progress(f"{min(done + step, copies) * saved + saved} of {checkpoints} checkpoints")
        cursor.execute(f"ANALYZE TABLE `{config.table_prefix}store_threads`, `{config.table_prefix}store_checkpoints`")


def add_old_threads(config: MySQLConfig, dsn: str, threads: int) -> int:
    """Add threads whose last save is `DAYS_OLD` days old, for vacuum; return the number of their checkpoints."""
    with administrator(dsn) as cursor:
        copier = Copier(cursor, f"{config.table_prefix}store_", "thread-0")
        copier.copy(1, threads, name="old", seconds_older=DAYS_OLD * 86_400)
        return threads * copier.rows


class Copier:
    """Copies threads under other ids, with all columns of the tables and with new tickets.

    Args:
        cursor: A cursor in the tables' database.
        prefix: The prefix of the tables' names.
        like: A LIKE pattern of the ids of the threads to copy.
    """

    def __init__(self, cursor: pymysql.cursors.Cursor, prefix: str, like: str) -> None:
        self._cursor = cursor
        with suppress(pymysql.err.OperationalError):  # saves time, if the account has the privilege
            cursor.execute("SET SESSION sql_log_bin = 0")
        self._tables = (f"{prefix}threads", f"{prefix}checkpoints")
        self._family = DICTS if prefix.endswith("store_") else AGENTS
        cursor.execute("DROP TEMPORARY TABLE IF EXISTS copied_threads, copied_checkpoints, numbers")
        for table, copied in zip(self._tables, ("copied_threads", "copied_checkpoints"), strict=True):
            cursor.execute(
                f"CREATE TEMPORARY TABLE {copied} AS SELECT o.*, ROW_NUMBER() OVER () AS row_no"
                f" FROM `{table}` o WHERE o.thread_id LIKE %s",
                (like,),
            )
        cursor.execute("SELECT COUNT(*) FROM copied_checkpoints")
        ((self.rows,),) = cursor.fetchall()
        cursor.execute("CREATE TEMPORARY TABLE numbers (n INT PRIMARY KEY)")

    def copy(self, first: int, last: int, name: str = "copy", seconds_older: int = 0) -> None:
        """Insert the copies with these numbers, each one second older than the previous one."""
        cursor = self._cursor
        cursor.execute("DELETE FROM numbers")
        cursor.executemany("INSERT INTO numbers VALUES (%s)", [(number,) for number in range(first, last + 1)])
        for table, copied in zip(self._tables, ("copied_threads", "copied_checkpoints"), strict=True):
            names, values = [], []
            cursor.execute(
                "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS"
                " WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s AND GENERATION_EXPRESSION = ''"
                " ORDER BY ORDINAL_POSITION",
                (table,),
            )
            for column, kind in cursor.fetchall():
                names.append(f"`{column}`")
                values.append(self._value(column, kind, name, seconds_older))
            cursor.execute(
                f"INSERT INTO `{table}` ({', '.join(names)}) SELECT {', '.join(values)}"
                f" FROM numbers n JOIN {copied} o ORDER BY n.n, o.thread_id"
            )
        cursor.execute(
            f"UPDATE `{self._tables[1]}` c JOIN numbers n JOIN copied_threads o"
            f" ON c.tenant = o.tenant AND c.thread_id = CONCAT('{name}-', n.n, '/', o.thread_id)"
            f" SET c.seal = {row_seal('c', self._family)} WHERE c.checkpoint_id IS NOT NULL"
        )

    def _value(self, column: str, kind: str, name: str, seconds_older: int) -> str:
        """Return the SQL of a copy's column, with the value that the package would have written."""
        ticket = f"(n.n * {self.rows} + o.row_no + 1000000)"
        channel = "(o.metadata->>'$.channel')"
        thread_id = f"CONCAT('{name}-', n.n, '/', o.thread_id)"
        if column == "thread_id":
            return thread_id
        if column == "payload":
            return moved_payload("o", thread_id, self._family)
        if column == "metadata":
            return f"CONCAT('{{\"channel\":\"', {channel}, '\",\"ticket\":', {ticket}, '}}')"
        if column == "metadata_keys":
            channel_key = PAIR_KEY.format(name="'channel'", value=f"CONCAT('\"', {channel}, '\"')")
            ticket_key = PAIR_KEY.format(name="'ticket'", value=ticket)
            keys = f"JSON_ARRAY(LEAST({channel_key}, {ticket_key}), GREATEST({channel_key}, {ticket_key}))"
            return f"IF(o.metadata IS NULL, NULL, {keys})"
        if kind == "datetime":
            return f"o.`{column}` - INTERVAL {seconds_older} + n.n SECOND"
        return f"o.`{column}`"
