"""LangGraph's tests that do not run against our savers and stores, with the reasons: patterns of their ids.

A reason must be true for every test that its pattern matches. ``docs/langgraph.md`` lists the differences for users.
"""

from __future__ import annotations

import re

_SCHEMA = "is about the other saver's own tables, statements or connections"
_PRIVATE = "reads or replaces private attributes of the other saver or store, or its rows by SQL"
_SAME = "is the same test in another mode of the other saver's connections or vectors"
_NO_SAVER = "calls functions of LangGraph's base package, and neither a saver nor a store of a database"
_SHALLOW = "is about a saver that keeps one checkpoint only; this package has none"
_REFUSED = "wants prune to refuse threads with a DeltaChannel; ours keeps what they need, as our own tests show"
_UNPUBLISHED = "needs a capability that the published version of the conformance suite does not have"
_KEYS = (
    "wants dots in filter keys as paths, and other characters refused; in PostgreSQL, memory and ours a key is a key"
)
_ITSELF = "fails with LangGraph's own savers too"

LEFT_OUT: dict[str, dict[str, str]] = {
    "langgraph": {
        # The expected metadata lack a key that the installed langchain-core adds.
        r"::test_weather_subgraph\[": _ITSELF,
        r"test_prune_postgres\.py::.*\[_checkpointer_postgres_(aio_)?(pipe|pool)": _SAME,
        r"test_prune_postgres\.py::test_a?keep_latest_refuses": _REFUSED,
        r"test_prune_postgres\.py::.*_saved_after_(it_read_the_heads|the_thread_check)$": _PRIVATE,
    },
    "langgraph-checkpoint": {
        r"::(test_get_text_at_path|test_dedupe_ops|test_validate_op_namespace|test_async_batch_store)": _NO_SAVER,
        r"test_memory\.py::test_memory_saver$": "opens one saver both by `with` and by `async with`",
        r"::test_(load_blobs_|seed_|(async_)?fallback_)": _PRIVATE,
        r"::test_get_channel_writes_(at_root|collects)": _PRIVATE,
    },
    "langgraph-checkpoint-postgres": {
        r"\[(.*-)?(aio_)?(pool|pipe)(-.*)?\]|\[halfvec|-halfvec": _SAME,
        r"\[shallow\]": _SHALLOW,
        r"::test_nonnull_migrations|::test_(escape_like_literal|namespace_match_pattern)": _SCHEMA,
        r"::test_abatch_uses_single_pool_checkout|_walk_reads_nothing_newer": _SCHEMA,
        r"::test_get_checkpoint_no_channel_values|::test_omit_expired_(filters|disabled|refresh|search)": _PRIVATE,
        r"test_prune\.py::(test_prune_conformance|.*_keeps_writes_saved_before_their_checkpoint)": "",
        r"test_prune\.py::test_keep_latest_refuses": _REFUSED,
        r"test_prune\.py::": _PRIVATE,
        r"test_conformance_delta\.py": _UNPUBLISHED,
        r"::test_inline_primitive_seed_is_found": "wants a stored None lost, as PostgreSQL's JSON cannot tell it from "
        "nothing; SQLite's saver, the one in memory and ours can",
    },
    "langgraph-checkpoint-sqlite": {
        r"test_writes_task_path_migration\.py|::test_walk_step_looks_up": _SCHEMA,
        r"::test_(nonnull_migrations|search_where|metadata_predicate|escape_glob|namespace_match_pattern)": _SCHEMA,
        r"::test_list_namespaces_prefix_uses_indexable_condition": _SCHEMA,
        r"test_store\.py::test_vector_store_initialization": _SCHEMA,
        r"test_conformance_delta\.py": _UNPUBLISHED,
        r"::test_informative_async_errors": "wants no asynchronous methods of the synchronous saver; ours has them",
        r"::test_(checkpoint_search_sql_injection_prevention|sql_injection_vulnerability)": _KEYS,
        r"::test_(metadata_)?filter_keys_with_hyphens_and_digits": _KEYS,
        r"::test_ttl_override_default": "wants a read to refresh the time to live only if refresh_on_read is True; "
        "LangGraph's base class, PostgreSQL's store and ours also refresh it by default",
    },
}

#: Tests that rely on sleeps of 10 to 100 ms. A busy machine may need up to five runs.
TIMED = r"::test_(stream_subgraphs_during_execution|stream_buffering_single_node|imp_nested)\["


def reason(package: str, test_id: str) -> str | None:
    """Return why a test is left out; None, or an empty text, if it runs."""
    return next((why for pattern, why in LEFT_OUT[package].items() if re.search(pattern, test_id)), None)
