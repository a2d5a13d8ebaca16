"""Searches and lists: page by page until there are enough matches; without a server."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from locus_mysql.dialect.checkpoints.queries import CheckpointPosition
from locus_mysql.errors import InvalidInput
from locus_mysql.families.checkpoints import queries
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.coding.delta import encode_delta, seal_payload
from locus_mysql.families.checkpoints.coding.digests import hash_logs
from locus_mysql.families.checkpoints.state_rows import row_seal

from .named_statements import BIG, KEY, TOKEN, Server, operations
from .states import CLEAR

AT = datetime(2026, 1, 1)


def hits(*names: str, value: str = "1") -> tuple[Any, ...]:
    return tuple(hit("t", name, f'{{"a":{value}}}', seq) for seq, name in enumerate(names))


def hit(thread_id: str, name: str, metadata: str, seq: int) -> tuple[Any, ...]:
    sealing = CLEAR.of("tenant", thread_id)
    return (thread_id, name, metadata, AT, TOKEN, row_seal(sealing, name, TOKEN, metadata), seq)


def test_pages_are_asked_for_until_there_are_enough_matches() -> None:
    server = Server(find_by_metadata=[[*hits("x"), *hits("y", value="true")], hits("z"), hits("never")])
    found = server.run(operations().queries.query_by_metadata("tenant", "a", 1, 2))
    assert [info["checkpoint_id"] for info in found] == ["x", "z"]
    keys = server.params("find_by_metadata")[0][1]
    assert server.params("find_by_metadata") == [
        ("tenant", keys, 2, None),
        ("tenant", keys, 100, CheckpointPosition(str(AT), 0, "t")),
    ]
    enough = Server(find_by_metadata=[hits("x", "y"), hits("never")])
    assert len(enough.run(operations().queries.query_by_metadata("tenant", "a", 1, 2))) == 2
    assert len(enough.sent) == 1
    few = Server(find_by_metadata=[hits("x"), hits("never")])
    assert len(few.run(operations().queries.query_by_metadata("tenant", "a", 1, 2))) == 1
    other_name = Server(find_by_metadata=[(hit("t", "x", '{"b":1}', 1),)])
    assert other_name.run(operations().queries.query_by_metadata("tenant", "a", 1)) == []


def state_rows(*names: str, value: str = "1", state: dict[str, Any] | None = None) -> list[Any]:
    encoded = encode(state or BIG)
    delta = encode_delta(encoded, hash_logs(encoded, {}), ())
    metadata = f'{{"a":{value}}}'
    rows = []
    for name in names:
        sealing = CLEAR.of("tenant", name)
        seal, payload = row_seal(sealing, name, TOKEN, metadata), seal_payload(sealing, delta, TOKEN)
        rows.append((name, name, metadata, AT, seal, 1, TOKEN, payload, AT))
    return rows


def test_states_are_asked_for_until_there_are_enough_matches() -> None:
    pages = [[*state_rows("x"), *state_rows("y", value="true")], state_rows("z"), state_rows("never")]
    server = Server(load_by_metadata=pages)
    found = server.run(operations().queries.states_by_metadata("tenant", "a", 1, 2))
    assert [(info["checkpoint_id"], state) for info, state in found] == [("x", BIG), ("z", BIG)]
    assert [(size, behind) for *_, size, behind in server.params("load_by_metadata")] == [
        (2, None),
        (100, CheckpointPosition(str(AT), 1, "y")),
    ]
    enough = Server(load_by_metadata=[state_rows("x", "y"), state_rows("never")])
    assert len(enough.run(operations().queries.states_by_metadata("tenant", "a", 1, 2))) == 2
    assert len(enough.sent) == 1


def test_newest_states_are_looked_through_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "SEARCH_DATA_PAGE", 2)
    first = [*state_rows("x", state={"a": 1}), *state_rows("y", state={"a": 2})]
    second = [*state_rows("z", state={"b": 1}), *state_rows("w", state={"a": 1})]
    server = Server(load_newest=[first, second, []])
    found = server.run(operations().queries.search_data("tenant", "a", 1))
    assert [(one["thread_id"], one["checkpoint_id"], one["data"]) for one in found] == [
        ("x", "x", {"a": 1}),
        ("w", "w", {"a": 1}),
    ]
    assert found[0]["updated_at"].tzinfo is not None
    assert [behind for *_, behind in server.params("load_newest")] == [None, (str(AT), "y"), (str(AT), "w")]
    enough = Server(load_newest=[first, second])
    assert len(enough.run(operations().queries.search_data("tenant", "a", 1, 1))) == 1
    assert len(enough.sent) == 1


def test_a_search_gives_each_checkpoint_once_by_its_best_text() -> None:
    rows = [("t", "x", AT, 2.0, "the word"), ("t", "x", AT, 1.0, "another word"), ("t", "y", AT, 0.5, "word")]
    server = Server(search=[[*rows, ("t", "z", AT, 0.1, "word")]])
    found = server.run(operations().queries.search("tenant", "word", 2))
    assert [(hit["checkpoint_id"], hit["score"], hit["snippet"]) for hit in found] == [
        ("x", 2.0, "the word"),
        ("y", 0.5, "word"),
    ]
    assert server.sent == ["index_pending search"]


@pytest.mark.parametrize(("query", "limit"), [("", 10), (" \t", 10), ("*", 10), ("word", 0)])
def test_no_statement_is_sent_where_nothing_can_match(query: str, limit: int) -> None:
    server = Server()
    assert server.run(operations().queries.search("tenant", query, limit)) == []
    assert server.sent == []


@pytest.mark.parametrize(
    "call",
    [
        lambda ops: ops.queries.search_data("tenant", 5, 1),
        lambda ops: ops.queries.search_data("tenant", "a", 1, -1),
        lambda ops: ops.queries.list_threads("tenant", pattern=5),
        lambda ops: ops.queries.list_threads("tenant", -1),
        lambda ops: ops.queries.list_threads("tenant", 1, "*", -1),
        lambda ops: ops.queries.count("tenant", 5),
        lambda ops: ops.queries.states_by_metadata("tenant", 5, 1),
        lambda ops: ops.queries.query_by_metadata("tenant", "a", 1, -1),
        lambda ops: ops.queries.search("tenant", "word", -1),
        lambda ops: ops.queries.list_with_metadata("tenant", -1),
        lambda ops: ops.queries.history("tenant", "t", -1),
    ],
)
def test_invalid_queries_are_refused(call: Any) -> None:
    with pytest.raises(InvalidInput):
        next(call(operations()))


def test_without_a_limit_the_default_number_is_returned() -> None:
    ops = operations()
    limits = [
        next(ops.queries.list_threads("tenant")).statements[0].params[1:],
        next(ops.queries.list_checkpoints(*KEY)).statements[0].params[2:],
        next(ops.queries.query_by_metadata("tenant", "a", 1)).statements[0].params[2:],
        next(ops.queries.states_by_metadata("tenant", "a", 1)).statements[0].params[2:],
        next(ops.queries.list_with_metadata("tenant")).statements[0].params[1:],
        next(ops.queries.history(*KEY)).statements[0].params[2:],
    ]
    assert limits == [("*", 100, 0), (10,), (100, None), (100, None), (100,), (100,)]
