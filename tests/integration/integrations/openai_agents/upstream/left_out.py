"""The SDK's tests that do not run against our sessions, with the reasons: patterns of their ids.

A reason must be true for every test that its pattern matches. ``docs/openai-agents.md`` lists the differences.
"""

from __future__ import annotations

import re

_OWN = "reads or replaces private attributes, connections, files, locks or rows of the other session"
_ENGINE = "is about the SQLAlchemy engine of the other session"
_DAMAGED = "wants damaged rows to be skipped; ours are reported with CorruptCheckpoint"
_CLOSED = "wants a closed session to be refused; ours opens its connections again"

LEFT_OUT: dict[str, str] = {
    r"corrupt": _DAMAGED,
    r"closed_rejects_empty_add_items": _CLOSED,
    r"test_sqlite_session_(close|reaps|closes|keeps|file_lock|failed|rollback|post_commit)": _OWN,
    r"::test_engine_property|::test_sqlite_configuration_registry": _ENGINE,
    r"test_sqlalchemy_session\.py::.*(non_ascii|create_tables|first_access|first_write|write_lock)": _OWN,
    r"test_sqlalchemy_session\.py::.*(same_timestamp|_for_ties|init_lock|reserves_writer)": _OWN,
    r"test_sqlalchemy_session\.py::.*(delete_rowcount|returning_claim)": _OWN,
    r"test_sqlalchemy_session\.py::(test_mutation_cancellation|test_concurrent_pop_item)": _OWN,
}


def reason(test: str) -> str | None:
    """Return why a test does not run; None if it runs."""
    return next((why for pattern, why in LEFT_OUT.items() if re.search(pattern, test)), None)
