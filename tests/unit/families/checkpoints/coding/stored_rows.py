"""The rows of one thread, in memory instead of the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from locus_mysql.families.checkpoints.coding.codec import HashedLogs, encode, hash_logs
from locus_mysql.families.checkpoints.coding.delta import (
    Delta,
    Held,
    Lineage,
    StoredRow,
    assemble,
    encode_delta,
    extend,
    rows_needed,
    seal_payload,
)
from locus_mysql.runtime.exact_json import decode_json

from ..states import CLEAR

State = dict[str, Any]


@dataclass
class Table:
    """Saves and loads states as a store does, with its rows in a dict."""

    rows: dict[int, StoredRow] = field(default_factory=dict)
    bases: dict[int, int] = field(default_factory=dict)
    provisional: set[int] = field(default_factory=set)
    hashed: HashedLogs = field(default_factory=dict)
    #: Whether a save has the text of the state saved before.
    holds: bool = True

    def save(
        self, state: State, lineage: Lineage, *, provisional: bool = False, compression: Any = "zlib"
    ) -> tuple[Delta, Lineage]:
        encoded = encode(state)
        held = self.hashed if self.holds else {}
        self.hashed = hash_logs(encoded, self.hashed)
        seq = len(self.rows) + 1
        token = seq.to_bytes(16)
        delta = encode_delta(
            encoded,
            self.hashed,
            lineage,
            provisional=provisional,
            compression=compression,
            held=held,
        )
        self.rows[seq] = StoredRow(seq, token, seal_payload(CLEAR, delta, token))
        self.bases[seq] = seq if delta.base is None else delta.base.seq
        if provisional:
            self.provisional.add(seq)
        return delta, extend(lineage, delta, seq, token, provisional=provisional)

    def chain(self, seq: int) -> list[StoredRow]:
        chain = [self.rows[seq]]
        while self.bases[chain[-1].seq] != chain[-1].seq:
            chain.append(self.rows[self.bases[chain[-1].seq]])
        return chain

    def load(self, seq: int) -> tuple[State, Lineage]:
        assembled, lineage = assemble(self.chain(seq), "t", CLEAR)
        text = assembled.text()
        return decode_json(text), lineage

    def load_with(self, seq: int, held: Held) -> tuple[State, Lineage]:
        """Load like a process that has a state cached; payloads of the cached rows are not sent."""
        seqs = [row.seq for row in rows_needed(held.lineage)]
        rows = [row._replace(payload=None) if row.seq in seqs else row for row in self.chain(seq)]
        assembled, lineage = assemble(rows, "t", CLEAR, held)
        return decode_json(assembled.text()), lineage

    @property
    def stored_bytes(self) -> int:
        return sum(len(row.payload or b"") for row in self.rows.values())


def message(number: int, size: int = 400) -> dict[str, Any]:
    return {"role": "user", "content": f"message {number} " + "x" * size, "metadata": {}}
