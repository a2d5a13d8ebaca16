"""The error for a session that somebody else has written to: `StaleSessionError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.adk.errors._stale_session_error import StaleSessionError
else:
    try:  # ADK's own, which has no public name yet
        from google.adk.errors._stale_session_error import StaleSessionError
    except ModuleNotFoundError:

        class StaleSessionError(ValueError):
            """Older versions of ADK raise a `ValueError`."""


__all__ = ["StaleSessionError"]
