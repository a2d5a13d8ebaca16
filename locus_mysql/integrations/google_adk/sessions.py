"""The session service of Google ADK: `AdkSessionService`."""

from __future__ import annotations

import asyncio
from typing import TypeAlias, Unpack
from weakref import WeakValueDictionary

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.session import Session
from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...runtime.database import Database, share
from ...runtime.stores import AsyncStore, awaited
from .session_operations import SessionOperations

_LockKey: TypeAlias = tuple[asyncio.AbstractEventLoop, str, str, str]


class AdkSessionService(AsyncStore[SessionOperations], BaseSessionService):
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

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(SessionOperations(config), database, owned=owned)
        self._appending = WeakValueDictionary[_LockKey, asyncio.Lock]()

    @awaited(SessionOperations.create_session)
    def create_session(self) -> None: ...
    @awaited(SessionOperations.get_session)
    def get_session(self) -> None: ...
    @awaited(SessionOperations.list_sessions)
    def list_sessions(self) -> None: ...
    @awaited(SessionOperations.delete_session)
    def delete_session(self) -> None: ...
    @awaited(SessionOperations.get_user_state)
    def get_user_state(self) -> None: ...

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
            appended = await self._run(self._operations.append(session, event))
            if appended.is_new:
                event = await BaseSessionService.append_event(self, session, event)
                session.last_update_time = event.timestamp
            if appended.marker is not None:
                session._storage_update_marker = str(appended.marker)
        return event
