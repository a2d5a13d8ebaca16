"""The framework's tests that do not run against our classes, with the reasons: patterns of their ids.

A reason must be true for every test that its pattern matches. ``docs/adk-strands-pydantic.md`` lists the differences.
"""

from __future__ import annotations

import re

_FILES = "is about the other storage's files, folders or sandboxes"
_OWN = "reads the files, the private paths or the private attributes of the other class"

LEFT_OUT: dict[str, str] = {
    r"::(test_clear|test_namespace_clear)": "is about `clear`, which is not part of the contract",
    r"test_local_file_storage\.py::.*(creates_directories|returns_local_file|normpath|sandbox|host_fs)": _FILES,
    r"test_local_file_storage\.py::.*(error_raises_storage_error|atomic_cleanup)": _FILES,
    r"test_keyword\.py::.*read_returns_none": _OWN,
    r"StashIntegration::.*(inline_stash|omits_stash_when_empty|immutable_snapshot|ephemeral)": (
        "is about a storage that ends with its process; ours lasts"
    ),
    r"test_file_session_manager\.py::test_(create|delete)_(session|agent|message|multi_agent)(?!.*nonexistent)": _OWN,
    r"test_file_session_manager\.py::test_(message_durable_id|corrupted_json_file|_get_)": _OWN,
}


def reason(test: str) -> str | None:
    """Return why a test does not run; None if it runs."""
    return next((why for pattern, why in LEFT_OUT.items() if re.search(pattern, test)), None)
