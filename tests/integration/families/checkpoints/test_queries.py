"""Queries find checkpoints by metadata, by text, by a value in the state, and by a pattern of ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput, SchemaMismatch
from locus_mysql.families.checkpoints.queries import lookup_text
from locus_mysql.families.checkpoints.statements.queries import FIND_BY_METADATA
from locus_mysql.runtime.matching import contains

from .conftest import Make, RunSQL

#: Values with different JSON representations.
DISTINCT_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    10**30,
    1e300,
    "",
    "1",
    "true",
    "null",
    "Ünïcode 😀",
    "unicode",
    [],
    [1],
    [True],
    [[1]],
    {},
    {"a": 1},
    {"a": True},
    {"a": {"b": [None]}},
    "\ud800",
]


class TestMetadata:
    async def test_any_json_value_is_found_by_itself_and_what_it_contains_only(self, store: Any) -> None:
        for number, value in enumerate(DISTINCT_VALUES):
            await store.save("t", {"n": number}, str(number), {"key": value, "other": number})
        for number, value in enumerate(DISTINCT_VALUES):
            found = {info["checkpoint_id"]: info["metadata"] for info in await store.query_by_metadata("key", value)}
            assert {*found} == {str(n) for n, other in enumerate(DISTINCT_VALUES) if contains(other, value)}
            assert found[str(number)] == {"key": value, "other": number}
            assert type(found[str(number)]["key"]) is type(value)

    async def test_containment_is_the_server_s(self, store: Any, sql: RunSQL) -> None:
        targets: list[Any] = [["a", "b"], "a", ["b", ["a"]], {"x": 1, "y": [2]}, [{"x": 1}, {"x": 2}], [], {}, [1, 1.0]]
        for number, value in enumerate(targets):
            await store.save("t", {}, str(number), {"k": value, "tags": ["a"]})
        for value in ["a", ["a"], ["b", "a"], [["a"]], {"x": 1}, {"y": 2}, {"y": []}, 1, [], {}, [{}], True, None]:
            found = {info["checkpoint_id"] for info in await store.query_by_metadata("k", value)}
            asking = "SELECT checkpoint_id FROM locus_store_checkpoints WHERE JSON_CONTAINS(metadata, %s)"
            by_server = sql(asking, json.dumps({"k": value}))
            assert found == {name for (name,) in by_server}, value

    async def test_many_that_hold_a_part_do_not_crowd_out_the_whole(self, store: Any) -> None:
        await store.save("t", {}, "wanted", {"who": {"name": "Ann Walrus", "team": 7}})
        for number in range(40):
            await store.save("t", {}, str(number), {"who": {"name": "Ann Walrus", "team": number % 5}})
        found = await store.query_by_metadata("who", {"team": 7, "name": "Ann Walrus"}, 1)
        assert [info["checkpoint_id"] for info in found] == ["wanted"]

    async def test_numbers_are_equal_by_value_and_objects_in_any_order(self, store: Any) -> None:
        await store.save("t", {}, metadata={"n": 1, "o": {"a": 1, "b": 2}, "z": -0.0})
        assert await store.query_by_metadata("n", 1.0)
        assert await store.query_by_metadata("o", {"b": 2.0, "a": 1})
        assert await store.query_by_metadata("z", 0)
        assert not await store.query_by_metadata("n", True)
        assert not await store.query_by_metadata("n", "1")
        assert not await store.query_by_metadata("missing", None)

    async def test_any_key_works_also_an_odd_one(self, store: Any) -> None:
        keys = ["", " ", "$.a", "a.b", "a[0]", '"', "'", "\\", "ключ", "😀", "A", "a", "\ud800"]
        await store.save("t", {}, metadata={key: key for key in keys if key != "\ud800"})
        for key in keys[:-1]:
            assert len(await store.query_by_metadata(key, key)) == 1
        with pytest.raises(InvalidInput):
            await store.query_by_metadata("\ud800", 1)

    async def test_checkpoints_come_newest_first_across_threads_and_up_to_the_limit(self, store: Any) -> None:
        for number in range(6):
            await store.save(f"t{number % 2}", {"n": number}, str(number), {"user": "me"})
        found = await store.query_by_metadata("user", "me")
        assert [info["checkpoint_id"] for info in found] == ["5", "4", "3", "2", "1", "0"]
        assert found[0]["thread_id"] == "t1"
        assert found[0]["created_at"].tzinfo is not None
        assert [info["checkpoint_id"] for info in await store.query_by_metadata("user", "me", 2)] == ["5", "4"]
        assert await store.query_by_metadata("user", "me", 0) == []

    async def test_metadata_with_two_thousand_pairs_is_saved_and_found(self, store: Any) -> None:
        many = {f"key{number}": number for number in range(2_000)}
        await store.save("t", {}, "many", many)
        for number in range(5):
            await store.save("t", {"n": number}, f"few{number}", {"key7": 7})
        assert (await store.get_metadata("t", "many"))["metadata"] == many
        assert [info["checkpoint_id"] for info in await store.query_by_metadata("key1999", 1999)] == ["many"]
        assert await store.query_by_metadata("key1999", 1998) == []
        found = await store.query_by_metadata("key7", 7, 6)
        assert [info["checkpoint_id"] for info in found] == ["few4", "few3", "few2", "few1", "few0", "many"]

    async def test_rows_with_too_many_pairs_do_not_crowd_out_matches(self, store: Any) -> None:
        await store.save("t", {}, "wanted", {"a": 1})
        for number in range(4):
            await store.save("t", {"n": number}, metadata={f"key{pair}": pair for pair in range(1_001)})
        assert [info["checkpoint_id"] for info in await store.query_by_metadata("a", 1, 1)] == ["wanted"]

    @pytest.mark.parametrize("value", [7, [7], {"is": 7}])
    async def test_the_index_is_used(self, store: Any, sql: RunSQL, value: Any) -> None:
        for number in range(200):
            await store.save("t", {"n": number}, metadata={"user": [number, {"is": number}], "kind": "all"})
        sql("ANALYZE TABLE locus_store_checkpoints")
        operations = store.store._operations
        statement = FIND_BY_METADATA(
            operations.checkpoints.context.sql,
            pieces={"after": ""},
            tenant="default",
            keys=lookup_text("user", value),
            limit=10,
        )
        plan = sql("EXPLAIN FORMAT=JSON " + statement.sql, *statement.params)[0][0]
        assert "metadata_pairs" in plan.replace("possible_keys", "")
        assert '"key": "metadata_pairs"' in plan or "using metadata_pairs" in plan

    async def test_get_metadata_returns_that_of_one_checkpoint_or_the_newest(self, store: Any) -> None:
        await store.save("t", {}, "one", {"n": 1})
        await store.save("t", {}, "two")
        newest, first = await store.get_metadata("t"), await store.get_metadata("t", "one")
        assert (newest["thread_id"], newest["checkpoint_id"], newest["metadata"]) == ("t", "two", {})
        assert first["metadata"] == {"n": 1}
        assert first["created_at"] < newest["created_at"]
        assert await store.get_metadata("t", "three") is None

    async def test_list_with_metadata_returns_the_newest_of_each_thread(self, store: Any) -> None:
        for name in ("a", "b", "c"):
            await store.save(name, {"n": 1}, f"{name}1", {"n": 1})
            await store.save(name, {"n": 2}, f"{name}2", {"n": 2})
        await store.delete("b", "b2")
        found = await store.list_with_metadata()
        assert [(info["thread_id"], info["checkpoint_id"], info["metadata"]) for info in found] == [
            ("c", "c2", {"n": 2}),
            ("b", "b1", {"n": 1}),
            ("a", "a2", {"n": 2}),
        ]
        assert len(await store.list_with_metadata(2)) == 2
        assert await store.list_with_metadata(0) == []


class TestGlobs:
    NAMES = ("a", "ab", "abc", "a%c", "a_c", "a*c", "a?c", "a\\c", "a\\%c", "ABC", "äbc", "a😀c", "[a]", "a[bc]c")

    async def test_only_star_and_question_mark_have_a_meaning(self, store: Any) -> None:
        for name in self.NAMES:
            await store.save(name, {})
        expected = {
            "*": set(self.NAMES),
            "a?c": {"abc", "a%c", "a_c", "a*c", "a?c", "a\\c", "a😀c"},
            "a%c": {"a%c"},
            "a_c": {"a_c"},
            "a\\c": {"a\\c"},
            "a\\*": {"a\\c", "a\\%c"},
            "a\\%c": {"a\\%c"},
            "A*": {"ABC"},
            "?": {"a"},
            "??": {"ab"},
            "*[*": {"[a]", "a[bc]c"},
            "[a]": {"[a]"},
            "a**c": {name for name in self.NAMES if name.startswith("a") and name.endswith("c") and len(name) > 1},
            "": set(),
            "nothing*": set(),
        }
        for pattern, names in expected.items():
            assert set(await store.list_threads(pattern=pattern)) == names, pattern
            assert await store.count(pattern) == len(names), pattern


class TestSearch:
    async def test_hits_come_best_first_with_score_and_snippet(self, store: Any) -> None:
        await store.save("strong", {"messages": ["a juicy pear"]}, "s")
        await store.save("weak", {"messages": ["a pear among " + "other fruits and more words " * 20]}, "w")
        for number in range(8):
            await store.save(f"other{number}", {"messages": [f"plum number {number}"]})
        hits = await store.search("juicy pear")
        assert [hit["thread_id"] for hit in hits] == ["strong", "weak"]
        assert hits[0]["score"] > hits[1]["score"] > 0
        assert "pear" in hits[1]["snippet"]
        assert len(hits[1]["snippet"]) <= 162
        assert hits[0]["checkpoint_id"] == "s"
        assert hits[0]["created_at"].tzinfo is not None
        assert [hit["thread_id"] for hit in await store.search("juicy pear", 1)] == ["strong"]

    async def test_the_newest_of_equals_comes_first(self, store: Any) -> None:
        for number in range(5):
            await store.save(f"t{number}", {"messages": ["the same pear"]})
        for number in range(5):
            await store.save(f"u{number}", {"messages": ["another plum"]})
        assert [hit["thread_id"] for hit in await store.search("pear")] == ["t4", "t3", "t2", "t1", "t0"]
        assert [hit["thread_id"] for hit in await store.search("pear", 2)] == ["t4", "t3"]

    async def test_each_text_belongs_to_the_checkpoint_that_added_it(self, store: Any) -> None:
        messages = []
        for word in ("apple", "banana", "cherry"):
            messages.append(f"{word} " + "x" * 3_000)
            await store.save("t", {"messages": messages}, word)
        for word in ("apple", "banana", "cherry"):
            assert [hit["checkpoint_id"] for hit in await store.search(word)] == [word]

    async def test_text_of_a_deleted_checkpoint_is_found_through_one_that_still_holds_it(self, store: Any) -> None:
        messages = []
        for word in ("apple", "banana", "cherry"):
            messages.append(f"{word} " + "x" * 3_000)
            await store.save("t", {"messages": messages, "note": f"note{word}"}, word)
        await store.delete("t", "apple")
        await store.delete("t", "banana")
        assert [hit["checkpoint_id"] for hit in await store.search("apple")] == ["cherry"]
        assert [hit["checkpoint_id"] for hit in await store.search("banana")] == ["cherry"]
        assert await store.search("noteapple") == []
        assert [hit["checkpoint_id"] for hit in await store.search("notecherry")] == ["cherry"]
        assert "apple" not in str(await store.load("t", "cherry"))[:0]

    @pytest.mark.parametrize("query", ["", "   ", "+", '"', "(((", "*", "@", "a", "'); --", "😀", "\x1e"])
    async def test_a_query_without_a_word_finds_nothing(self, store: Any, query: str) -> None:
        await store.save("t", {"m": ["apple the a"], "h": "head"})
        assert await store.search(query) == []

    async def test_accents_and_case_do_not_matter_to_a_search(self, store: Any) -> None:
        await store.save("t", {"m": ["Crème Brûlée"]})
        assert len(await store.search("creme")) == 1
        assert len(await store.search("BRÛLÉE")) == 1

    async def test_checkpoints_saved_by_another_process_are_found_at_once(self, make_store: Make, sql: RunSQL) -> None:
        writer, reader = make_store(), make_store()
        for number in range(3):
            await writer.save(f"t{number}", {"m": [f"apple {number}"]})
            assert len(await reader.search("apple")) == number + 1
        assert sql("SELECT COUNT(*) FROM locus_store_checkpoints WHERE unindexed = 1") == ((0,),)

    async def test_a_checkpoint_deleted_before_its_text_was_indexed_is_not_found(self, store: Any, sql: RunSQL) -> None:
        await store.save("t", {"m": ["apple"]}, "one")
        await store.save("t", {"m": ["pear"]}, "two")
        await store.delete("t", "one")
        assert sql("SELECT pending_text FROM locus_store_checkpoints") == (("pear",),)
        assert await store.search("apple") == []
        assert [hit["checkpoint_id"] for hit in await store.search("pear")] == ["two"]

    async def test_a_copy_is_found_too(self, store: Any) -> None:
        await store.save("indexed", {"m": ["apple"]}, "c")
        assert len(await store.search("apple")) == 1
        await store.save("waiting", {"m": ["apple pear"]}, "c")
        for source in ("indexed", "waiting"):
            await store.copy_thread(source, f"{source} copy")
        found = {hit["thread_id"] for hit in await store.search("apple")}
        assert found == {"indexed", "indexed copy", "waiting", "waiting copy"}

    async def test_text_of_any_size_is_found_in_a_thread_begun_anew_under_the_same_id(self, store: Any) -> None:
        """InnoDB reuses deleted rows, and their old values must fit into an undo record (error 1713)."""
        for size in range(500, 17_000, 1_500):
            for fruit in ("apple", "pear"):
                await store.save("t", {"m": [f"{fruit} " + "word " * (size // 5)]})
                assert len(await store.search(fruit)) == 1
                await store.delete("t")

    async def test_search_switched_off_raises_an_error_and_stores_no_text(self, make_store: Make, sql: RunSQL) -> None:
        store = make_store(search=False)
        await store.save("t", {"m": ["apple"]})
        with pytest.raises(InvalidInput, match="search=True"):
            await store.search("apple")
        assert sql("SELECT search_text, pending_text FROM locus_store_checkpoints") == ((None, None),)
        with pytest.raises(SchemaMismatch, match=r"ADD KEY pending .*, ADD FULLTEXT"):
            await make_store().load("t")

    async def test_lone_surrogates_do_not_hinder_a_search(self, store: Any) -> None:
        await store.save("t", {"m": ["apple \ud800 pear"]})
        assert [hit["thread_id"] for hit in await store.search("pear")] == ["t"]
        assert await store.load("t") == {"m": ["apple \ud800 pear"]}

    async def test_many_hits_of_one_thread_do_not_hide_another(self, store: Any) -> None:
        await store.save("rare", {"m": ["pear plum"]})
        for number in range(40):
            await store.save("busy", {"m": [f"pear {n}" for n in range(number + 1)]})
        assert "rare" in {hit["thread_id"] for hit in await store.search("pear", 100)}
        assert len(await store.search("pear", 3)) == 3


class TestSearchData:
    async def test_containment_of_values_follows_mysql(self, store: Any) -> None:
        await store.save("a", {"tags": ["x", "y"], "user": {"name": "Ann", "age": 3}, "n": 1})
        await store.save("b", {"tags": ["y"], "user": {"name": "Bob"}, "n": True})
        expected = [
            ("tags", "y", {"a", "b"}),
            ("tags", ["x"], {"a"}),
            ("user", {"name": "Ann"}, {"a"}),
            ("n", 1.0, {"a"}),
            ("n", True, {"b"}),
            ("missing", None, set()),
        ]
        for path, value, threads in expected:
            found = await store.search_data(path, value)
            assert {one["thread_id"] for one in found} == threads, (path, value)
        assert (await store.search_data("n", 1))[0]["data"]["user"] == {"name": "Ann", "age": 3}

    async def test_only_the_newest_state_counts_and_many_threads_are_read(self, store: Any) -> None:
        await store.save("t", {"n": "old"})
        await store.save("t", {"n": "new"})
        for number in range(70):
            await store.save(f"x{number}", {"m": [number] * 900, "even": number % 2 == 0})
        assert await store.search_data("n", "old") == []
        assert [one["thread_id"] for one in await store.search_data("n", "new")] == ["t"]
        assert len(await store.search_data("even", True)) == 35
        assert [one["thread_id"] for one in await store.search_data("even", True, 2)] == ["x68", "x66"]

    async def test_states_stored_as_deltas_are_read(self, store: Any) -> None:
        for name in ("a", "b"):
            for turn in range(1, 9):
                await store.save(name, {"m": ["x" * 500] * turn, "turn": turn})
        found = await store.search_data("turn", 8)
        assert [(one["thread_id"], len(one["data"]["m"])) for one in found] == [("b", 8), ("a", 8)]
