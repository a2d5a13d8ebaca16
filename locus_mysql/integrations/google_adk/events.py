"""ADK's events, states and keys as they are stored, and back. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.state import State

from ...errors import CorruptCheckpoint, InvalidInput
from ...families.transcripts.records import Transcript, TranscriptKey
from ...runtime.exact_json import encode_json
from ...runtime.sealing import content_digest

#: The kind of sessions. The app is their collection, user and session their name.
KIND = "google-adk"

#: The kind of states that sessions share. The app is their collection.
STATE_KIND = "google-adk-state"

#: The names of an app's state and of its secret, and the prefix of the user's id in the name of a user's state.
APP_STATE, APP_SECRET, USER_STATE = "app", "secret", "user:"

_MARKER = re.compile(r"locus:(\d+):(\d+)")

#: An item's id contains the id of its event, unless that is longer than this, in bytes.
EVENT_ID_BYTES = 200


class StateChanges(NamedTuple):
    """Changes of a state by their scope, without prefixes. Keys that begin with ``temp:`` are omitted."""

    app: dict[str, Any]
    user: dict[str, Any]
    session: dict[str, Any]


def json_of_event(event: Event) -> dict[str, Any]:
    """Return an event as JSON, without changes of the temporary state.

    Values that JSON cannot hold are written as ADK writes them: sets as lists, functions as text with a warning.

    Raises:
        InvalidInput: ADK cannot write it as JSON.
    """
    content = _dump(event)
    delta = content.get("actions", {}).get("stateDelta")
    if not event.actions.state_delta.keys() <= (delta or {}).keys():
        raise InvalidInput("A key of the event's changes of state holds a lone surrogate, which ADK would replace.")
    if delta:
        content["actions"]["stateDelta"] = without_temporary(delta)
    return content


def event_of(content: Any) -> Event:
    """Return a stored event.

    Raises:
        CorruptCheckpoint: It is not an event.
    """
    try:
        return Event.model_validate(content)
    except ValueError:
        raise CorruptCheckpoint(
            "A stored item is no event of ADK, or one of a newer version. Upgrade google-adk."
        ) from None


def item_id_of(
    event: Event, content: Mapping[str, Any], tenant: str, session: TranscriptKey, secret: bytes | None
) -> str:
    """Return the id of an event's item: equal for equal events, different for different events with one id.

    Args:
        event: The event.
        content: The event as JSON.
        tenant: The tenant.
        session: The session's transcript.
        secret: The app's secret; None without encryption. See `content_digest`.
    """
    digest = content_digest(encode_json(content), secret, tenant, session.collection, session.name)
    encoded = event.id.encode(errors="surrogatepass")
    if len(encoded) <= EVENT_ID_BYTES and event.id.isprintable():
        return f"{event.id}:{digest[:16]}"
    return f"sha256:{digest}"


def event_id_of(content: Any) -> str | None:
    """Return the id of a stored event."""
    event_id = content.get("id") if isinstance(content, Mapping) else None
    return event_id if isinstance(event_id, str) else None


def json_of_state(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a state as JSON, in the way in which an event's changes are written."""
    if not state:
        return {}
    event = Event(actions=EventActions(state_delta=dict(state)))
    written: dict[str, Any] = json_of_event(event)["actions"]["stateDelta"]
    return written


def changes_in(delta: Mapping[str, Any]) -> StateChanges:
    """Sort changes by their scope."""
    changes = StateChanges({}, {}, {})
    for key, value in delta.items():
        if key.startswith(State.APP_PREFIX):
            changes.app[key.removeprefix(State.APP_PREFIX)] = value
        elif key.startswith(State.USER_PREFIX):
            changes.user[key.removeprefix(State.USER_PREFIX)] = value
        elif not key.startswith(State.TEMP_PREFIX):
            changes.session[key] = value
    return changes


def merged(app: Mapping[str, Any], user: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state that an agent sees."""
    return {
        **session,
        **{State.APP_PREFIX + key: value for key, value in app.items()},
        **{State.USER_PREFIX + key: value for key, value in user.items()},
    }


def without_temporary(delta: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes without those of the temporary state."""
    return {key: value for key, value in delta.items() if not key.startswith(State.TEMP_PREFIX)}


def _dump(event: Event, **options: Any) -> dict[str, Any]:
    try:
        return event.model_dump(mode="json", by_alias=True, exclude_none=True, **options)
    except ValueError as error:  # pydantic's message may contain values
        raise InvalidInput(f"The event or state cannot be written as JSON ({type(error).__name__}).") from None


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
