"""What a list shows of a state, from one row."""

from __future__ import annotations

from locus_mysql.families.checkpoints.coding.payload import beginning_of
from locus_mysql.families.checkpoints.previews import partial_state

from .coding.stored_rows import Table, message


def test_a_row_with_copies_shows_the_items_after_the_last_copy() -> None:
    table = Table()
    begun = [message(number) for number in range(20)]
    _, lineage = table.save({"messages": begun, "turn": 1}, ())
    table.save({"messages": [*begun[2:], message(20), message(21)], "turn": 2}, lineage)
    payload = table.rows[2].payload
    assert payload is not None
    assert payload[:1] in {b"\x03", b"\x04"}
    beginning = beginning_of(payload)
    assert partial_state(beginning) == {"messages": [message(20), message(21)], "turn": 2}
    assert partial_state(beginning, beginning=True) == {"messages": [], "turn": 2}
