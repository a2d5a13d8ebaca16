"""The session repository of Strands Agents, `StrandsSessionRepository`, and its operations, which do no I/O."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar, Unpack

from strands.multiagent.base import MultiAgentBase
from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from ...config import ENVIRONMENT, Keywords
from ...engine.operation import Operation
from ...errors import InvalidInput, LocusMySQLError, NotFound, TurnLost, VersionConflict
from ...families.transcripts.operations import FrameworkTranscripts
from ...families.transcripts.records import Header, Item, NewItem, Read, TranscriptKey, Write, Written
from ...records.leases import OwnerKey
from ...records.turns import SyncTurns
from ...runtime.database import Where, share
from ...runtime.exact_json import as_json, canonical_text
from ...runtime.stores import blocking_method

#: The kind of these transcripts. The session is their name; their collection is empty.
KIND = "strands"

#: The beginnings of the parts of agents and multi-agents.
AGENT, MULTI_AGENT = "agent/", "multi-agent/"

#: A limit above the number of messages that any agent has.
ALL = 2**31

T = TypeVar("T")


class _Missing(Exception):
    """A transcript that a write needs does not exist, as far as this process knows."""


class StrandsSessionOperations(FrameworkTranscripts):
    """Stores the sessions of one tenant.

    Args:
        config: The options.
    """

    def thread_key(self, session_id: str) -> OwnerKey:
        """Return the key of a turn on a session with its agents."""
        return self.owner_key(_session(session_id))

    def create_session(self, /, session: Session, **kwargs: Any) -> Operation[Session]:
        """Create a session; returns it. One round trip.

        Args:
            session: The session. Its id has 1 to 800 bytes of UTF-8 without NUL.
            kwargs: Ignored.

        Raises:
            SessionException: There is one of this id already.
            InvalidInput: The id cannot be stored.
        """
        header = Header(_as_json(session.to_dict()))
        try:
            yield from self._transcripts.append(_session(session.session_id), header=header, expected=0)
        except VersionConflict:
            raise SessionException(f"Session {session.session_id} already exists") from None
        return session

    def read_session(self, /, session_id: str, **kwargs: Any) -> Operation[Session | None]:
        """Return a session; None if there is none. One round trip."""
        state = yield from self._state(_session(session_id))
        return None if state is None else Session.from_dict(state)

    def delete_session(self, /, session_id: str, **kwargs: Any) -> Operation[None]:
        """Delete a session with its agents and messages. One round trip.

        Raises:
            SessionException: There is no such session.
        """
        if not (yield from self._transcripts.delete(_session(session_id), parts=True)):
            raise SessionException(f"Session {session_id} does not exist")

    def create_agent(self, /, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> Operation[None]:
        """Create an agent in a session. One round trip; two more if another process wrote to the session.

        Raises:
            SessionException: There is no such session, or it has the agent already.
            InvalidInput: The id or the state cannot be stored.
        """
        key = _agent(session_id, session_agent.agent_id)
        write = Write(key, header=Header(_as_json(session_agent.to_dict())), expected=0)
        try:
            yield from self._write_in(session_id, write, f"Session {session_id} does not exist")
        except VersionConflict:
            raise SessionException(f"Agent {session_agent.agent_id} already exists in session {session_id}") from None

    def read_agent(self, /, session_id: str, agent_id: str, **kwargs: Any) -> Operation[SessionAgent | None]:
        """Return an agent; None if there is none. One round trip."""
        state = yield from self._state(_agent(session_id, agent_id))
        return None if state is None else SessionAgent.from_dict(state)

    def update_agent(self, /, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> Operation[None]:
        """Replace an agent's state; its ``created_at`` stays. One round trip; two more if another process wrote.

        Raises:
            SessionException: There is no such agent.
            InvalidInput: The state cannot be stored.
        """
        new = _as_json(session_agent.to_dict())

        def replaced(state: Any, items: Sequence[NewItem]) -> Any:
            session_agent.created_at = _existing(state, items)["created_at"]
            return {**new, "created_at": session_agent.created_at}

        write = Write(_agent(session_id, session_agent.agent_id), fold=replaced)
        missing = f"Agent {session_agent.agent_id} in session {session_id} does not exist"
        yield from self._write_in(session_id, write, missing)

    def create_message(
        self, /, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> Operation[None]:
        """Add a message to an agent. One round trip; two more if another process wrote to the session.

        An equal message of the same id is not stored again.

        Raises:
            SessionException: There is no such agent, or it has another message of this id, which another process wrote.
                Nothing was stored.
            InvalidInput: The message cannot be stored.
        """
        item = NewItem(_as_json(session_message.to_dict()), _item_id(session_message.message_id))
        key = _agent(session_id, agent_id)
        missing = f"Agent {agent_id} in session {session_id} does not exist"
        written = yield from self._write_in(session_id, Write(key, (item,), fold=_existing), missing)
        if written.added:
            return
        stored = yield from self._transcripts.find(key, str(item.item_id))
        if stored is None or canonical_text(stored.content) != canonical_text(item.content):
            raise SessionException(
                f"Message {item.item_id} already exists in agent {agent_id} in session {session_id}. Another process "
                "has continued the session; restore the agent."
            )

    def read_message(
        self, /, session_id: str, agent_id: str, message_id: int, **kwargs: Any
    ) -> Operation[SessionMessage | None]:
        """Return a message of an agent; None if there is none. One round trip.

        Raises:
            ValueError: The id is not a whole number.
        """
        found = yield from self._transcripts.find(_agent(session_id, agent_id), _item_id(message_id))
        return None if found is None else SessionMessage.from_dict(found.content)

    def update_message(
        self, /, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> Operation[None]:
        """Replace a message, such as by its redacted form; its ``created_at`` stays. Two round trips.

        Raises:
            SessionException: There is no such message.
            InvalidInput: The message cannot be stored.
        """
        key, item_id = _agent(session_id, agent_id), _item_id(session_message.message_id)
        found = yield from self._transcripts.find(key, item_id)
        try:
            if found is None:
                raise NotFound
            session_message.created_at = found.content["created_at"]
            yield from self._transcripts.replace(key, item_id, _as_json(session_message.to_dict()))
        except NotFound:
            raise SessionException(f"Message {item_id} does not exist") from None

    def list_messages(
        self, /, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> Operation[list[SessionMessage]]:
        """Return messages of an agent, in the order of their ids; empty if there is no such agent. One round trip.

        Args:
            session_id: The session.
            agent_id: The agent.
            limit: At most this many; None: all.
            offset: Skip this many of the first. The server then reads only their keys.
            kwargs: Ignored.
        """
        key, begin = _agent(session_id, agent_id), max(offset, 0)
        if limit is None or limit >= 0:
            items = _items(
                (yield from self._transcripts.read(key, limit=ALL if limit is None else limit, offset=begin))
            )
            if offset >= 0 and [item.item_id for item in items] == [str(offset + one) for one in range(len(items))]:
                return _messages(items)
        # Negative numbers count from the end, and ids that a caller chose need not be in the order of arrival.
        items = sorted(_items((yield from self._transcripts.read(key))), key=lambda item: int(item.item_id or 0))
        return _messages(items[offset:] if limit is None else items[offset : offset + limit])

    def create_multi_agent(self, /, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> Operation[None]:
        """Store the state of a graph or swarm in a session. One round trip; two more if another process wrote.

        Raises:
            SessionException: There is no such session.
        """
        header = Header(_as_json(multi_agent.serialize_state()))
        write = Write(_multi_agent(session_id, multi_agent.id), header=header)
        yield from self._write_in(session_id, write, f"Session {session_id} does not exist")

    def read_multi_agent(
        self, /, session_id: str, multi_agent_id: str, **kwargs: Any
    ) -> Operation[dict[str, Any] | None]:
        """Return the state of a graph or swarm; None if there is none. One round trip."""
        state: dict[str, Any] | None = yield from self._state(_multi_agent(session_id, multi_agent_id))
        return state

    def update_multi_agent(self, /, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> Operation[None]:
        """Replace the state of a graph or swarm. One round trip; two more if another process wrote.

        Raises:
            SessionException: It has no state yet.
        """
        write = Write(_multi_agent(session_id, multi_agent.id), fold=_replacing(multi_agent.serialize_state()))
        missing = f"MultiAgent state {multi_agent.id} in session {session_id} does not exist"
        yield from self._write_in(session_id, write, missing)

    def _state(self, key: TranscriptKey) -> Operation[Any]:
        transcript = yield from self._transcripts.get(key)
        return None if transcript is None else transcript.header.state

    def _write_in(self, session_id: str, write: Write, missing: str) -> Operation[Written]:
        """Write to a part of a session that exists, in one transaction that also renews the session's expiry."""
        session = Write(_session(session_id), fold=_existing)
        try:
            _, written = yield from self._transcripts.write([session, write], once=True)
            return written
        except _Missing:  # or another process has created it since this one looked
            for one in (session.key, write.key):
                yield from self._transcripts.get(one)
        try:
            _, written = yield from self._transcripts.write([session, write], once=True)
        except _Missing:
            raise SessionException(missing) from None
        return written


def _session(session_id: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", session_id)


def _agent(session_id: str, agent_id: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", session_id, AGENT + agent_id)


def _multi_agent(session_id: str, multi_agent_id: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", session_id, MULTI_AGENT + multi_agent_id)


def _existing(state: Any, items: Sequence[NewItem]) -> Any:
    """Keep the state, which must exist: a `Fold`."""
    if state is None:
        raise _Missing
    return state


def _replacing(new: Any) -> Callable[[Any, Sequence[NewItem]], Any]:
    """Return a `Fold` that replaces a state, which must exist."""

    def replaced(state: Any, items: Sequence[NewItem]) -> Any:
        _existing(state, items)
        return _as_json(new)

    return replaced


def _items(read: Read | None) -> Sequence[Item]:
    return () if read is None else read.items


def _messages(items: Sequence[Item]) -> list[SessionMessage]:
    return [SessionMessage.from_dict(item.content) for item in items]


def _item_id(message_id: object) -> str:
    if not isinstance(message_id, int):
        raise ValueError(f"message_id=<{message_id}> | message id must be an integer")
    return str(int(message_id))


def _as_json(value: object) -> Any:
    return as_json(value, "A part of the session")


class StrandsSessionRepository(SyncTurns[StrandsSessionOperations], SessionRepository):
    """Keeps sessions, agents and messages in MySQL: a `strands.session.session_repository.SessionRepository`.

    Blocking, as the contract is. Safe to share between threads and session managers.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to sessions.

    Example:
        ```python
        with StrandsSessionRepository("mysql://user:password@localhost/app", tenant="acme") as repository:
            manager = RepositorySessionManager("customer-7", repository)
            assert repository.read_session("customer-7") == manager.session
        ```
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(StrandsSessionOperations(config), database, owned=owned)

    create_session = blocking_method(StrandsSessionOperations.create_session)
    read_session = blocking_method(StrandsSessionOperations.read_session)
    delete_session = blocking_method(StrandsSessionOperations.delete_session)
    create_agent = blocking_method(StrandsSessionOperations.create_agent)
    read_agent = blocking_method(StrandsSessionOperations.read_agent)
    update_agent = blocking_method(StrandsSessionOperations.update_agent)
    create_message = blocking_method(StrandsSessionOperations.create_message)
    read_message = blocking_method(StrandsSessionOperations.read_message)
    update_message = blocking_method(StrandsSessionOperations.update_message)
    list_messages = blocking_method(StrandsSessionOperations.list_messages)
    create_multi_agent = blocking_method(StrandsSessionOperations.create_multi_agent)
    read_multi_agent = blocking_method(StrandsSessionOperations.read_multi_agent)
    update_multi_agent = blocking_method(StrandsSessionOperations.update_multi_agent)

    def _run(self, operation: Generator[Any, Any, T]) -> T:
        try:
            return super()._run(operation)
        except (InvalidInput, TurnLost):
            raise
        except LocusMySQLError as error:
            raise SessionException(str(error)) from error
