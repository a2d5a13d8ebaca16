"""The SDK's tests that do not run against our sessions, with the reasons: patterns of their ids.

A reason must be true for every test that its pattern matches. ``docs/agent-sdks.md`` lists the differences.
"""

from __future__ import annotations

import re

_OWN = "reads or replaces private attributes, connections, files, locks or rows of the other session"
_ENGINE = "is about the SQLAlchemy engine of the other session"
_DAMAGED = "wants damaged rows to be skipped; ours are reported with CorruptCheckpoint"
_CLOSED = "wants a closed session to be refused; ours opens its connections again"

_PROCESSES = "starts processes that open the file of the other session; ours has such a test of its own"
_LOGS = "is about the messages that the other session logs"
_ADVANCED = r"test_advanced_sqlite_session\.py::"

LEFT_OUT: dict[str, str] = {
    _ADVANCED + r".*(structure_table|owner|custom_table_names|identifier|child_column_casing)": _OWN,
    _ADVANCED + r".*(structure_metadata|existing_history|invalidates_connection|rolls_back|rollback)": _OWN,
    _ADVANCED + r".*(cancellation|legacy|migrate|unlocked|reservation|clear_generation_table)": _OWN,
    _ADVANCED
    + r".*(stale_switch|stale_create|stale_store|queued|turn_ordering|_snapshot_|while_capture|during_capture)": _OWN,
    _ADVANCED
    + r".*(branch_only_messages|still_referenced|set_based_delete|its_structure_row|keeps_shared_messages)": _OWN,
    _ADVANCED
    + r".*(only_when_unreferenced|preserves_message_structure|skips_corrupt|coherent_branch|lock_off_event)": _OWN,
    _ADVANCED
    + r".*(structure_and_usage_metadata|turn_emptied|unrelated_branch|has_no_turn|resets_current_branch)": _OWN,
    _ADVANCED + r".*(across_processes|coherent_owner)": _PROCESSES,
    _ADVANCED + r".*(logging_respects|failure_identity)": _LOGS,
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
