"""`assert_sound`: checks the invariants of the tables, which hold after any sequence of operations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from locus_mysql.families.checkpoints.coding.delta import StoredRow, assemble
from locus_mysql.families.checkpoints.records import row_seal
from locus_mysql.families.checkpoints.statements.tables import INFIXES
from locus_mysql.families.graphs.statements.tables import OWN_PARTS
from locus_mysql.runtime.exact_json import decode_json
from locus_mysql.runtime.sealing import Sealing


@dataclass(frozen=True)
class StoredCheckpoint:
    """A row of the table of checkpoints."""

    seq: int
    name: str | None
    parent: int | None
    base: int | None
    continues: int
    token: bytes
    payload: bytes
    metadata: str | None
    metadata_keys: str | None
    search_text: str | None
    pending_text: str | None
    seal: int

    @property
    def text(self) -> str | None:
        """Return its searchable text, indexed or not yet."""
        return self.search_text or self.pending_text


def assert_all_sound(connection: Any) -> None:
    """Verify all tables of the schema, of every prefix and kind."""
    tables = [name for (name,) in _rows(connection, "SHOW TABLES")]
    for table in tables:
        if table.endswith("graph_threads"):
            assert_graphs_sound(connection, table.removesuffix("graph_threads"))
        elif table.endswith("threads") and table.replace("threads", "checkpoints") in tables:
            assert_sound(connection, table.removesuffix("threads"))
        if table.endswith("transcripts"):
            assert_transcripts_sound(connection, table.removesuffix("transcripts"))


def assert_sound(connection: Any, prefix: str = "locus_") -> None:
    """Verify a schema's tables by raw SQL.

    Args:
        connection: A DB-API connection that has the schema selected.
        prefix: The tables' prefix.
    """
    kind = next((kind for kind, infix in INFIXES.items() if infix and prefix.endswith(infix)), "agents")
    threads = {
        (tenant, thread_id): last_seq
        for tenant, thread_id, last_seq in _rows(
            connection, f"SELECT tenant, thread_id, last_seq FROM `{prefix}threads`"
        )
    }
    stored: dict[tuple[str, str], dict[int, StoredCheckpoint]] = {}
    for tenant, thread_id, *values in _rows(
        connection,
        "SELECT tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload, metadata,"
        f" metadata_keys, search_text, pending_text, seal FROM `{prefix}checkpoints`",
    ):
        stored.setdefault((tenant, thread_id), {})[values[0]] = StoredCheckpoint(*values)
    assert stored.keys() == threads.keys(), "a thread without checkpoints, or checkpoints without a thread"
    for thread, rows in stored.items():
        assert max(rows) <= threads[thread], (thread, "a row is newer than the thread")
        _assert_thread_sound(thread, rows, Sealing(None, kind).of(*thread))


def assert_transcripts_sound(connection: Any, prefix: str = "locus_") -> None:
    """Verify the tables of transcripts by raw SQL."""
    counted = {
        sid: tuple(map(int, numbers))
        for sid, *numbers in _rows(
            connection,
            f"SELECT sid, COUNT(*), SUM(LENGTH(content)), MAX(seq) FROM `{prefix}transcript_items` GROUP BY sid",
        )
    }
    for sid, items, size_bytes, last_seq, revision, prior in _rows(
        connection, f"SELECT sid, items, size_bytes, last_seq, revision, prior FROM `{prefix}transcripts`"
    ):
        count, size, last = counted.pop(sid, (0, 0, 0))
        assert (items, size_bytes) == (count, size), "a transcript counts other items than it has"
        assert last <= last_seq, "an item is newer than its transcript"
        assert prior < revision, "a revision that did not rise"
    assert not counted, "items of no transcript"


def assert_graphs_sound(connection: Any, prefix: str = "locus_") -> None:
    """Verify the tables of graphs' checkpoints by raw SQL.

    Args:
        connection: A DB-API connection that has the schema selected.
        prefix: The tables' prefix.
    """
    threads = {tuple(row) for row in _rows(connection, f"SELECT tenant, thread_id FROM `{prefix}graph_threads`")}
    rows = _rows(
        connection,
        "SELECT tenant, thread_id, ns_key, seq, stored_seq, hidden, sources, chunk IS NOT NULL, checkpoint_key,"
        f" parent_key, needs FROM `{prefix}graph_checkpoints`",
    )
    parts = {tuple(row) for row in _rows(connection, f"SELECT tenant, thread_id, part FROM `{prefix}graph_parts`")}
    apart = set(parts)
    parts |= {(row[0], row[1], row[3] * OWN_PARTS) for row in rows if row[7]}
    visible = {(row[0], row[1]) for row in rows if row[5] == 0}
    assert visible == threads, "a thread without checkpoints, or checkpoints without a thread"
    assert {(row[0], row[1]) for row in rows} <= threads, "hidden checkpoints without a thread"
    used: set[tuple[Any, ...]] = set()
    needed = {(row[0], row[1], row[9]) for row in rows if row[10]}
    for tenant, thread_id, _, seq, stored_seq, hidden, sources, _, checkpoint_key, _, _ in rows:
        numbers = json.loads(sources)
        own = seq if stored_seq is None else stored_seq
        here = {(tenant, thread_id, own * OWN_PARTS + part if part < OWN_PARTS else part) for part in numbers}
        assert here <= parts, (thread_id, seq, "a part is gone")
        used |= here
        assert hidden in (0, 1), (thread_id, seq, "what is to be removed was left")
        assert not hidden or (tenant, thread_id, checkpoint_key) in needed, (
            thread_id,
            seq,
            "hidden, and nobody needs it",
        )
    assert apart <= used, "parts that no checkpoint needs were left"


def _assert_thread_sound(thread: tuple[str, str], rows: dict[int, StoredCheckpoint], sealing: Sealing) -> None:
    named = [row for row in rows.values() if row.name is not None]
    assert named, (thread, "a thread without checkpoints")
    needed: set[int] = set()
    for row in named:
        chain = _chain(thread, rows, row)
        needed |= {link.seq for link in chain}
        state, _ = assemble([StoredRow(link.seq, link.token, link.payload) for link in chain], thread[1], sealing)
        assert row.seal == row_seal(sealing, row.name or "", row.token, row.metadata), (thread, row.seq, "a wrong seal")
        assert isinstance(decode_json(state.text()), dict)
    followed = {row.parent for row in rows.values()}
    heirs = _rows_whose_text_is_held(rows)
    for row in rows.values():
        where = (thread, row.seq)
        assert row.parent is None or row.parent < row.seq, (where, "a parent is not older")
        assert row.parent is None or row.parent in rows, (where, "a parent is gone")
        assert (row.base is None) == (row.payload == b""), (where, "a row is half emptied")
        assert row.search_text is None or row.pending_text is None, (where, "a text is both indexed and not yet")
        if row.name is not None:
            continue
        assert row.seq in followed, (where, "an unnamed row that none follows was left")
        assert row.base is None or row.seq in needed, (where, "a payload that nothing needs was left")
        assert row.metadata is None, (where, "metadata of a deleted checkpoint was left")
        assert row.metadata_keys is None, (where, "metadata keys of a deleted checkpoint were left")
        assert row.text is None or row.seq in heirs, (where, "text that no checkpoint holds was left")


def _chain(thread: tuple[str, str], rows: dict[int, StoredCheckpoint], row: StoredCheckpoint) -> list[StoredCheckpoint]:
    chain = [row]
    while chain[-1].base != chain[-1].seq:
        base = chain[-1].base
        assert base is not None, (thread, row.seq, chain[-1].seq, "a row that is needed has no payload")
        assert base < chain[-1].seq, (thread, row.seq, "a base is not older")
        assert base in rows, (thread, row.seq, base, "a base is gone")
        chain.append(rows[base])
    return chain


def _rows_whose_text_is_held(rows: dict[int, StoredCheckpoint]) -> set[int]:
    """Return the rows whose text belongs to a named row: the named rows, and the rows that they continue."""
    held: set[int] = set()
    for row in rows.values():
        link: StoredCheckpoint | None = row if row.name is not None else None
        while link is not None and link.seq not in held:
            held.add(link.seq)
            link = rows.get(link.parent) if link.continues == 1 and link.parent is not None else None
    return held


def _rows(connection: Any, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())
