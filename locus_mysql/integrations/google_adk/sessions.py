"""The session service of Google ADK, `AdkSessionService`, and its operations, which do no I/O."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias, Unpack
from weakref import WeakValueDictionary

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform import time as platform_time
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.operation import Operation, gather, named
from ...engine.retry import Backoff
from ...errors import VersionConflict
from ...families.transcripts.coding import row_key
from ...families.transcripts.operations import FrameworkTranscripts
from ...families.transcripts.records import Header, Item, NewItem, Transcript, TranscriptKey, Write
from ...records.turns import AsyncTurn
from ...runtime.arguments import tenant_of
from ...runtime.database import Where, share
from ...runtime.stores import AsyncStore, awaited_method
from .events import (
    KIND,
    STATE_KIND,
    Marker,
    app_key,
    changes_in,
    event_id_of,
    event_of,
    ids_of,
    item_id_of,
    json_of_event,
    json_of_state,
    merged,
    secret_key,
    session_key,
    user_key,
)

#: The number of events that a read of the events since a time begins with; each further read takes four times as many.
RECENT_EVENTS = 64

_LockKey: TypeAlias = tuple[asyncio.AbstractEventLoop, str, str, str]


class Appended(NamedTuple):
    """The result of `AdkSessionOperations.append`.

    Args:
        is_new: Whether the session object lacks the event.
        marker: The stored revision that the session object then has; None leaves its marker.
    """

    is_new: bool
    marker: Marker | None


class AdkSessionOperations(FrameworkTranscripts):
    """Stores ADK's sessions of one tenant.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config)
        #: The secrets of apps by tenant and name, from which ids of encrypted events are derived.
        self._secrets: dict[tuple[str, str], bytes] = {}

    def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Operation[Session]:
        """Create a session. Two round trips.

        Args:
            app_name: The app: up to 800 bytes of UTF-8 without NUL.
            user_id: The user: up to 795 bytes; with the session's id up to 799, where ``/`` and ``~`` count twice.
            state: The first state. Keys with ``app:`` and ``user:`` change what the app's and the user's sessions
                share; keys with ``temp:`` are not stored.
            session_id: The id, without white space around it; None or blank: a generated one.

        Raises:
            AlreadyExistsError: The user has a session with this id; nothing was changed.
            InvalidInput: An id is too long or holds a NUL.
        """
        session_id = (session_id or "").strip() or platform_uuid.new_uuid()
        key, changes = session_key(app_name, user_id, session_id), changes_in(json_of_state(state))
        for shared in (app_key(app_name), user_key(app_name, user_id)):
            row_key(tenant_of(self.config), shared)  # raises for an id that cannot be stored, before anything is stored
        now = platform_time.get_time()
        writes = [
            Write(key, header=Header(changes.session, tag=repr(now), scope=user_id), expected=0),
            *_shared_writes(app_name, user_id, changes.app, changes.user),
        ]
        try:
            written = yield from self._transcripts.write(writes)
        except VersionConflict:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from None
        app, user = yield from gather(
            [self._transcripts.get(app_key(app_name)), self._transcripts.get(user_key(app_name, user_id))]
        )
        return _session(
            app_name, user_id, session_id, merged(_state(app), _state(user), changes.session), now,
            Marker(written[0].revision, 0),
        )  # fmt: skip

    def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Operation[Session | None]:
        """Return a session with its events; None if there is none. One round trip.

        Args:
            app_name: The app.
            user_id: The user.
            session_id: The id, without white space around it.
            config: Which events are returned: of the last ``num_recent_events``, those that follow the last one older
                than ``after_timestamp``. The server reads at most ``num_recent_events``; for ``after_timestamp`` it
                reads the last 64 events, then four times as many as before, until it finds an older one.

        Raises:
            CorruptCheckpoint: A row is damaged.
        """
        key = session_key(app_name, user_id, session_id.strip())
        wanted = config or GetSessionConfig()
        limit, since = wanted.num_recent_events, wanted.after_timestamp
        last = limit if since is None or limit is None else min(limit, RECENT_EVENTS)
        if since is not None and limit is None:
            last = RECENT_EVENTS
        while True:
            found, app, user = yield from gather(
                [
                    self._opened(key, last),
                    self._transcripts.get(app_key(app_name)),
                    self._transcripts.get(user_key(app_name, user_id)),
                ]
            )
            if found is None:
                return None
            transcript, items = found
            events = [event_of(item.content) for item in items]
            if since is not None:
                first = next((n for n in range(len(events), 0, -1) if events[n - 1].timestamp < since), 0)
                if first == 0 and last is not None and len(events) == last and last != limit:
                    last = last * 4 if limit is None else min(last * 4, limit)
                    continue
                events = events[first:]
            return _stored_session(transcript, _state(app), _state(user), events)

    def list_sessions(self, *, app_name: str, user_id: str | None = None) -> Operation[ListSessionsResponse]:
        """Return the sessions of a user, or of all users, without events; last updated last. One round trip."""
        if user_id is None:
            found, shared = yield from gather(
                [
                    self._transcripts.list_transcripts(KIND, app_name, states=True),
                    self._transcripts.list_transcripts(STATE_KIND, app_name, states=True),
                ]
            )
        else:
            found, *shared = yield from gather(
                [
                    self._transcripts.recent(KIND, app_name, scope=user_id, states=True),
                    self._transcripts.get(app_key(app_name)),
                    self._transcripts.get(user_key(app_name, user_id)),
                ]
            )
        states: dict[TranscriptKey, Any] = {one.key: _state(one) for one in shared if one is not None}
        sessions = []
        for transcript in found:
            owner, _ = ids_of(transcript.key)
            if user_id not in {None, owner}:
                continue  # the command `copy` keeps the scope of the session that it copies
            app, user = states.get(app_key(app_name), {}), states.get(user_key(app_name, owner), {})
            sessions.append(_stored_session(transcript, app, user, []))
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> Operation[None]:
        """Delete a session with its events; the states of app and user stay. One round trip."""
        yield from self._transcripts.delete(session_key(app_name, user_id, session_id.strip()))

    def get_user_state(self, *, app_name: str, user_id: str) -> Operation[dict[str, Any]]:
        """Return the state that the user's sessions share, by keys without ``user:``. One round trip."""
        return _state((yield from self._transcripts.get(user_key(app_name, user_id))))

    def append(self, session: Session, event: Event) -> Operation[Appended]:
        """Store an event at the end of a session, and its changes of states, all or nothing.

        One round trip; five if another process has changed one of the shared states since this one read or wrote it.
        An equal event is stored once. With ``encryption``, the first event of an app takes one to three more.
        """
        key, content = session_key(session.app_name, session.user_id, session.id), json_of_event(event)
        marker = Marker.read(getattr(session, "_storage_update_marker", None)) or (
            yield from self._without_marker(key, session)
        )
        changes = changes_in(content.get("actions", {}).get("stateDelta") or {})
        secret = (yield from self._secret(session.app_name)) if self.config.encryption else None
        item = NewItem(content, item_id_of(event, content, tenant_of(self.config), key, secret))
        writes = [
            Write(
                key, [item], fold=_update(changes.session), tag=repr(float(event.timestamp)), expected=marker.revision
            ),
            *_shared_writes(session.app_name, session.user_id, changes.app, changes.user),
        ]
        try:
            written, *_ = yield from self._transcripts.write(writes, once=True)
        except VersionConflict:
            return (yield from self._after_conflict(key, session, item, marker))
        if not written.added:
            return Appended(is_new=False, marker=None)
        return Appended(is_new=True, marker=Marker(written.revision, marker.last_seq + 1))

    def _secret(self, app_name: str) -> Operation[bytes]:
        """Return an app's secret, which is stored by the first call."""
        key, backoff = secret_key(app_name), Backoff(f"The secret of app {app_name!r} was neither found nor stored")
        place = tenant_of(self.config), app_name
        while place not in self._secrets:
            stored = yield from self._transcripts.get(key)
            if stored is None:
                backoff.check()
                new = Write(key, header=Header({"secret": secrets.token_hex(32)}), expected=0, expires=False)
                with suppress(VersionConflict):  # another process stored one
                    yield from self._transcripts.write([new])
            else:
                self._secrets[place] = bytes.fromhex(_state(stored)["secret"])
        return self._secrets[place]

    def _after_conflict(
        self, key: TranscriptKey, session: Session, item: NewItem, marker: Marker
    ) -> Operation[Appended]:
        """Accept an event that is stored already by an append whose answer was lost; else raise."""
        transcript, stored = yield from gather(
            [self._transcripts.get(key), self._transcripts.find(key, item.item_id or "")]
        )
        if transcript is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        if stored is None:
            raise _stale(session)
        if stored.seq == transcript.last_seq == marker.last_seq + 1:
            return Appended(is_new=True, marker=Marker.of(transcript))
        return Appended(is_new=False, marker=None)

    def _without_marker(self, key: TranscriptKey, session: Session) -> Operation[Marker]:
        """Return the stored revision for a session loaded by another service, if it has the last stored event."""
        found = yield from self._transcripts.open(key, last=1)
        if found is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        transcript, items = found
        known = session.events[-1].id if session.events else None
        last = event_id_of(items[-1].content) if items else None
        # Events have the times of their writers' clocks: the time is compared only if the session has no events.
        if last != known and (known is not None or _updated_at(transcript) > session.last_update_time):
            raise _stale(session)
        return Marker.of(transcript)

    def _opened(self, key: TranscriptKey, last: int | None) -> Operation[tuple[Transcript, Sequence[Item]] | None]:
        """Return a transcript and its last items; ``last`` may be 0."""
        if last != 0:
            return (yield from self._transcripts.open(key, last=last))
        transcript = yield from self._transcripts.get(key)
        return None if transcript is None else (transcript, [])


def _shared_writes(app_name: str, user_id: str, app: Mapping[str, Any], user: Mapping[str, Any]) -> Iterable[Write]:
    """Return the writes that change the states that sessions share, which outlive the sessions."""
    if app:
        yield Write(app_key(app_name), fold=_update(app), expires=False)
    if user:
        yield Write(user_key(app_name, user_id), fold=_update(user), expires=False)


def _update(changes: Mapping[str, Any]) -> Callable[[Any, Sequence[NewItem]], Any]:
    """Return the fold that applies changes to a state."""
    return lambda state, _: {**(state or {}), **changes} if changes else state


def _state(transcript: Transcript | None) -> dict[str, Any]:
    """Return the state in a transcript."""
    return {} if transcript is None else transcript.header.state or {}


def _updated_at(transcript: Transcript) -> float:
    """Return the time of a session's last event; that of its creation if it has no events."""
    tag = transcript.header.tag
    return transcript.updated_at.timestamp() if tag is None else float(tag)


def _stored_session(
    transcript: Transcript, app: Mapping[str, Any], user: Mapping[str, Any], events: list[Event]
) -> Session:
    user_id, session_id = ids_of(transcript.key)
    state = merged(app, user, _state(transcript))
    updated_at = _updated_at(transcript)
    return _session(transcript.key.collection, user_id, session_id, state, updated_at, Marker.of(transcript), events)


def _session(
    app_name: str,
    user_id: str,
    session_id: str,
    state: dict[str, Any],
    updated_at: float,
    marker: Marker,
    events: Sequence[Event] = (),
) -> Session:
    session = Session(
        id=session_id,
        app_name=app_name,
        user_id=user_id,
        state=state,
        events=list(events),
        last_update_time=updated_at,
    )
    session._storage_update_marker = str(marker)
    return session


def _stale(session: Session) -> StaleSessionError:
    return StaleSessionError(
        f"Session {session.id} has been written to since it was loaded. Nothing was stored. Load it again with "
        "get_session, and append the event to what you get."
    )


class AdkSessionService(AsyncStore[AdkSessionOperations], BaseSessionService):
    """Keeps the sessions of Google ADK in MySQL: a `google.adk.sessions.BaseSessionService` with all its methods.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to sessions.

    Example:
        ```python
        async with AdkSessionService("mysql://user:password@localhost/app") as service:
            session = await service.create_session(app_name="shop", user_id="ada", state={"user:name": "Ada"})
            await service.append_event(session, Event(author="user", invocation_id="1", state={"step": 1}))
            session = await service.get_session(app_name="shop", user_id="ada", session_id=session.id)
            assert session.state == {"step": 1, "user:name": "Ada"}
        ```
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(AdkSessionOperations(config), database, owned=owned)
        self._appending = WeakValueDictionary[_LockKey, asyncio.Lock]()

    def turn(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        wait_s: float = 30.0,
        lease_s: float = 20.0,
        take_over: bool = False,
    ) -> AsyncTurn:
        """Allow one turn at a time on a session, across all processes: an ``async with`` block.

        Load the session in the block. Everything else is as with `CheckpointStore.turn`.
        """
        key = self._operations.owner_key(session_key(app_name, user_id, session_id.strip()))
        return AsyncTurn(self, key, session_id, wait_s, lease_s, take_over=take_over)

    create_session = awaited_method(AdkSessionOperations.create_session)
    get_session = awaited_method(AdkSessionOperations.get_session)
    list_sessions = awaited_method(AdkSessionOperations.list_sessions)
    delete_session = awaited_method(AdkSessionOperations.delete_session)
    get_user_state = awaited_method(AdkSessionOperations.get_user_state)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event at the end of a session with its changes of states, and add it to the session object.

        A partial event is returned unchanged. An event that is stored already, in a call whose answer was lost, is not
        stored again. Changes of ``temp:`` keys reach the session object only. One round trip.

        Args:
            session: The session as `create_session` or `get_session` returned it.
            event: The event.

        Returns:
            The event, without its changes of ``temp:`` keys.

        Raises:
            StaleSessionError: Another process has written to the session since this object was loaded. Nothing was
                stored; load it again, and append the event to the new object.
            SessionNotFoundError: The session does not exist.
            InvalidInput: The event cannot be stored exactly.
        """
        if event.partial:
            return event
        key = (asyncio.get_running_loop(), session.app_name, session.user_id, session.id)
        # Tasks that share a session object wait for each other: it has one revision.
        async with self._appending.setdefault(key, asyncio.Lock()):
            appended = await self._run(named(self._operations.append(session, event), "append_event"))
            if appended.is_new:
                event = await BaseSessionService.append_event(self, session, event)
                session.last_update_time = event.timestamp
            if appended.marker is not None:
                session._storage_update_marker = str(appended.marker)
        return event
