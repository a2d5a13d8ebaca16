"""Tests of LangGraph's that are not run against ours, each with the reason: patterns of their ids by package."""

from __future__ import annotations

import re

_SCHEMA = "is about the other saver's own tables, statements or connections"
_PRIVATE = "looks at private attributes of the other saver or store"
_SAME = "is the same test in another mode of the other saver's connections or vectors"
_NO_SAVER = "is about no saver and no store"
_SHALLOW = "is about a saver that keeps one checkpoint only, which ours has not"
_REFUSED = "wants a refusal where ours keeps what is needed: prune of threads with a DeltaChannel"
_UNPUBLISHED = "needs a capability of the conformance suite that its published version has not"
_KEYS = "wants dotted keys in filters as paths and other keys refused; here, as in PostgreSQL, a key is a key"
_CLOCK = "compares times of a run with tenths of a second, which a busy machine does not keep"
_ITSELF = "fails with LangGraph's own savers too"

LEFT_OUT: dict[str, dict[str, str]] = {
    "langgraph": {
        # The expected metadata lack a key that the installed langchain-core adds.
        r"::test_weather_subgraph\[": _ITSELF,
        r"::test_stream_(subgraphs_during_execution|buffering_single_node)\[": _CLOCK,
    },
    "langgraph-checkpoint": {
        r"::(test_get_text_at_path|test_dedupe_ops|test_validate_op_namespace)": _NO_SAVER,
        r"::test_async_batch_store": _NO_SAVER,
        r"test_memory\.py::test_memory_saver$": "uses a synchronous saver in `async with`",
        r"::test_(load_blobs|get_channel_writes|fallback|async_fallback|seed)_": _PRIVATE,
    },
    "langgraph-checkpoint-postgres": {
        r"\[(.*-)?(aio_)?(pool|pipe)(-.*)?\]|\[halfvec|-halfvec": _SAME,
        r"\[shallow\]": _SHALLOW,
        r"::test_nonnull_migrations|::test_(escape_like_literal|namespace_match_pattern)": _SCHEMA,
        r"::test_abatch_uses_single_pool_checkout|_walk_reads_nothing_newer": _SCHEMA,
        r"::test_get_checkpoint_no_channel_values|::test_omit_expired_(filters|disabled|refresh|search)": _PRIVATE,
        r"test_prune\.py::test_prune_conformance": "",
        r"test_prune\.py::test_keep_latest_refuses": _REFUSED,
        r"test_prune\.py::": _PRIVATE,
        r"test_conformance_delta\.py": _UNPUBLISHED,
        # JSON of PostgreSQL cannot tell null from nothing; SQLite's saver and the one in memory can, as ours.
        r"::test_inline_primitive_seed_is_found": _SCHEMA,
        # Without an index its store ignores a query; here such a search is by word.
        r"::test_store_ttl\[": "searches with a query in a store without an index",
    },
    "langgraph-checkpoint-sqlite": {
        r"test_writes_task_path_migration\.py|::test_walk_step_looks_up": _SCHEMA,
        r"::test_(nonnull_migrations|search_where|metadata_predicate|escape_glob|namespace_match_pattern)": _SCHEMA,
        r"::test_list_namespaces_prefix_uses_indexable_condition": _SCHEMA,
        r"::test_vector_store_initialization": _PRIVATE,
        r"test_conformance_delta\.py": _UNPUBLISHED,
        r"::test_informative_async_errors": "wants no asynchronous methods of the synchronous saver, which ours has",
        r"::test_(checkpoint_search_sql_injection_prevention|sql_injection_vulnerability)": _KEYS,
        r"::test_(metadata_)?filter_keys_with_hyphens_and_digits": _KEYS,
        r"::test_numeric_filter_safety": "filters by NaN and infinities, which ours refuses as JSON has none",
        # The base class says that a read refreshes by default.
        r"::test_ttl_override_default": "wants a read not to refresh unless the options say so",
    },
}


def reason(package: str, test_id: str) -> str | None:
    """Why a test is left out; None, or an empty text, if it is run."""
    return next((why for pattern, why in LEFT_OUT[package].items() if re.search(pattern, test_id)), None)
