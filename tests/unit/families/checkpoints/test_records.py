"""Records of checkpoints made from rows; damaged rows are skipped."""

from __future__ import annotations

import inspect

from locus_mysql.families.checkpoints.store import StoreOperations


def test_without_a_limit_a_store_returns_the_default_number() -> None:
    defaults = {
        f"{name}.{parameter.name}": parameter.default
        for name in (
            "list_checkpoints",
            "list_threads",
            "query_by_metadata",
            "search",
            "search_data",
            "vacuum",
            "history",
        )
        for parameter in inspect.signature(getattr(StoreOperations, name)).parameters.values()
        if parameter.default is not inspect.Parameter.empty
    }
    assert defaults == {
        "list_checkpoints.limit": 10,
        "list_threads.limit": 100,
        "list_threads.pattern": "*",
        "list_threads.offset": 0,
        "query_by_metadata.limit": 100,
        "search.limit": 10,
        "search_data.limit": 100,
        "vacuum.older_than_days": 30,
        "history.limit": 100,
    }
