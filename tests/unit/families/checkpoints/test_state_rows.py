"""Selection of the new rows on which a thread's newest checkpoint builds."""

from __future__ import annotations

import pytest

from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.coding.delta import Ancestor, Held, Lineage, NotHeld, StoredRow
from locus_mysql.families.checkpoints.state_rows import rows_since
from locus_mysql.families.checkpoints.statements.loading import SinceRow

PAYLOAD = b"payload"


def token(seq: int) -> bytes:
    return seq.to_bytes(16)


def lineage(*seqs: int) -> Lineage:
    return tuple(
        Ancestor(seq, token(seq), base, 0, False, {}) for seq, base in zip(seqs, (*seqs[1:], None), strict=True)
    )


#: A process has the state of row 5, which builds on rows 3 and 1.
HELD = Held(lineage(5, 3, 1), {}, encode({"a": 1}))


def row(seq: int, base_seq: int | None, *, named: bool = True) -> SinceRow:
    payload = None if seq == 5 else PAYLOAD
    return SinceRow(b"version", seq, base_seq, token(seq), payload, int(named))


def there(*seqs: int) -> list[StoredRow]:
    return [StoredRow(seq, token(seq), None if seq <= 5 else PAYLOAD) for seq in seqs]


@pytest.mark.parametrize(
    ("found", "rows"),
    [
        pytest.param([row(5, 3)], there(5), id="nothing new"),
        pytest.param([row(6, 5), row(5, 3)], there(6, 5), id="on the state that is held"),
        pytest.param([row(8, 7), row(7, 3), row(6, 5), row(5, 3)], there(8, 7, 3), id="on one that it builds on"),
        pytest.param([row(7, 7), row(6, 5), row(5, 3)], there(7), id="on nothing"),
        pytest.param([row(7, 6, named=False), row(6, 1), row(5, 3)], there(6, 1), id="the newest has no name"),
        pytest.param([row(6, 5), row(5, 3, named=False)], there(6, 5), id="what is held has no name"),
    ],
)
def test_rows_are_followed_to_the_cached_state(found: list[SinceRow], rows: list[StoredRow]) -> None:
    assert rows_since(found, HELD) == rows


@pytest.mark.parametrize(
    "found",
    [
        pytest.param([], id="no thread"),
        pytest.param([row(6, 6)], id="what is held is gone, or too many came since"),
        pytest.param([row(6, 5), SinceRow(b"version", 5, 3, token(9), None, 1)], id="another row in its place"),
        pytest.param([row(5, 3, named=False)], id="no checkpoint since"),
        pytest.param([row(6, 4), row(5, 3)], id="on a row that is not held"),
        pytest.param([row(6, None), row(5, 3)], id="on a row that was not read"),
        pytest.param([row(7, 8), row(6, 5), row(5, 3)], id="on a later row"),
        pytest.param([row(8, 3, named=False), row(7, 8), row(5, 3)], id="on a later row that is there"),
    ],
)
def test_rows_that_do_not_lead_to_the_cached_state_must_be_read(found: list[SinceRow]) -> None:
    with pytest.raises(NotHeld):
        rows_since(found, HELD)
