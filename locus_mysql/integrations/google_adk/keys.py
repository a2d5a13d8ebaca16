"""The keys of the transcripts that store sessions and states, and the marker of a session's revision. No I/O."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...families.transcripts.records import Transcript, TranscriptKey

#: The kind of sessions. The app is their collection, user and session their name.
KIND = "google-adk"

#: The kind of states that sessions share. The app is their collection.
STATE_KIND = "google-adk-state"

#: The names of an app's state and of its secret, and the prefix of the user's id in the name of a user's state.
APP_STATE, APP_SECRET, USER_STATE = "app", "secret", "user:"

_MARKER = re.compile(r"locus:(\d+):(\d+)")


class Marker(NamedTuple):
    """The stored revision that a session object has: its ``_storage_update_marker``.

    Args:
        revision: The transcript's revision.
        last_seq: The seq of its last event; 0 without one.
    """

    revision: int
    last_seq: int

    @classmethod
    def of(cls, transcript: Transcript) -> Marker:
        """Return the marker of a stored session."""
        return cls(transcript.revision, transcript.last_seq)

    @classmethod
    def read(cls, text: str | None) -> Marker | None:
        """Return the marker in a text; None if there is none, or one of another session service."""
        found = _MARKER.fullmatch(text or "")
        return cls(int(found[1]), int(found[2])) if found else None

    def __str__(self) -> str:
        return f"locus:{self.revision}:{self.last_seq}"


def session_key(app_name: str, user_id: str, session_id: str) -> TranscriptKey:
    """Return the transcript of a session."""
    return TranscriptKey(KIND, app_name, f"{_escaped(user_id)}/{_escaped(session_id)}")


def ids_of(key: TranscriptKey) -> tuple[str, str]:
    """Return the user and the session of a transcript."""
    user_id, _, session_id = key.name.partition("/")
    return _unescaped(user_id), _unescaped(session_id)


def app_key(app_name: str) -> TranscriptKey:
    """Return the transcript with the state of an app."""
    return TranscriptKey(STATE_KIND, app_name, APP_STATE)


def secret_key(app_name: str) -> TranscriptKey:
    """Return the transcript with the secret from which ids of an app's encrypted events are derived."""
    return TranscriptKey(STATE_KIND, app_name, APP_SECRET)


def user_key(app_name: str, user_id: str) -> TranscriptKey:
    """Return the transcript with the state of a user in an app."""
    return TranscriptKey(STATE_KIND, app_name, USER_STATE + user_id)


def _escaped(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


def _unescaped(text: str) -> str:
    return text.replace("~1", "/").replace("~0", "~")
