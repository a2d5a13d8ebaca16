"""The session store of the Claude Agent SDK, `ClaudeSessionStore`, and its operations, which do no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Unpack, cast

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from ...config import ENVIRONMENT, Keywords
from ...engine.operation import Operation
from ...errors import InvalidInput
from ...families.transcripts.operations import FrameworkTranscripts
from ...families.transcripts.records import Fold, NewItem, Transcript, TranscriptKey
from ...records.turns import AsyncTurn
from ...runtime.database import Where, share
from ...runtime.stores import AsyncStore, awaited_method

#: The kind of these transcripts. The project is their collection, the session their name, the subpath their part.
KIND = "claude-agent-sdk"

#: The maximum number of entries in one transaction. The SDK sends at most 500 entries, of about 1 MB.
ENTRIES_AT_ONCE = 5_000

#: A longer uuid, in bytes, is hashed.
UUID_BYTES = 200


class ClaudeOperations(FrameworkTranscripts):
    """Stores the SDK's transcripts of one tenant.

    Args:
        config: The options.
    """

    def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> Operation[None]:
        """Store entries at the end of a transcript, all or none.

        An entry whose ``uuid`` the transcript has already is skipped; entries without one are always added. The summary
        of a main transcript is computed from the new entries, in the same transaction. One round trip; four if
        another process has written to the session since this one did, two for the first of a process.

        Args:
            key: The transcript.
            entries: The entries. More than 5,000 are stored in several transactions.

        Raises:
            InvalidInput: The key or an entry cannot be stored exactly.
            StateTooLarge: The entries need a larger packet than the server's ``max_allowed_packet``.
        """
        transcript, fold = key_of(key), None if key.get("subpath") else _summarized(key)
        for start in range(0, len(entries), ENTRIES_AT_ONCE):
            items = [NewItem(entry, _item_id(entry)) for entry in entries[start : start + ENTRIES_AT_ONCE]]
            yield from self._transcripts.append(transcript, items, fold=fold)

    def load(self, key: SessionKey) -> Operation[list[SessionStoreEntry] | None]:
        """Return all entries of a transcript in their order; None if it was never written. One round trip.

        Raises:
            CorruptCheckpoint: A row is damaged.
        """
        read = yield from self._transcripts.read(key_of(key))
        return None if read is None else [cast(SessionStoreEntry, item.content) for item in read.items]

    def list_sessions(self, project_key: str) -> Operation[list[SessionStoreListEntry]]:
        """Return the sessions of a project that have a main transcript, each with its last write. One round trip."""
        found = yield from self._transcripts.list_transcripts(KIND, project_key)
        return [{"session_id": one.key.name, "mtime": _mtime(one)} for one in found]

    def list_session_summaries(self, project_key: str) -> Operation[list[SessionSummaryEntry]]:
        """Return the summaries of the sessions of a project, with the times of `list_sessions`. One round trip."""
        found = yield from self._transcripts.list_transcripts(KIND, project_key, states=True)
        return [
            {"session_id": one.key.name, "mtime": _mtime(one), "data": one.header.state}
            for one in found
            if one.header.state is not None
        ]

    def delete(self, key: SessionKey) -> Operation[None]:
        """Delete a session with all its transcripts; with a ``subpath``, only that transcript. One round trip."""
        yield from self._transcripts.delete(key_of(key), parts=not key.get("subpath"))

    def list_subkeys(self, key: SessionListSubkeysKey) -> Operation[list[str]]:
        """Return the subpaths of a session's transcripts, in order by code point. One round trip."""
        main = key_of(cast(SessionKey, key))
        found = yield from self._transcripts.list_transcripts(KIND, main.collection, name=main.name, parts=True)
        return [one.key.part for one in found if one.key.part]


def key_of(key: SessionKey) -> TranscriptKey:
    """Return the transcript of the SDK's key.

    Raises:
        InvalidInput: The subpath is empty, which the SDK's contract forbids.
    """
    subpath = key.get("subpath")
    if subpath == "":
        raise InvalidInput("The subpath of a session key is empty. Omit it for the main transcript.")
    return TranscriptKey(KIND, key["project_key"], key["session_id"], subpath or "")


def _summarized(key: SessionKey) -> Fold:
    """Return the fold that updates the summary of a session."""

    def fold(state: Any, items: Sequence[NewItem]) -> Any:
        before: SessionSummaryEntry | None = None
        if state is not None:
            before = {"session_id": key["session_id"], "mtime": 0, "data": state}
        return fold_session_summary(before, key, [item.content for item in items])["data"]

    return fold


def _item_id(entry: SessionStoreEntry) -> str | None:
    uuid: object = entry.get("uuid") if isinstance(entry, dict) else None
    if not isinstance(uuid, str):
        return None
    encoded = uuid.encode(errors="surrogatepass")
    if 1 <= len(encoded) <= UUID_BYTES and uuid.isprintable():
        return uuid
    return f"sha256:{hashlib.sha256(encoded).hexdigest()}"


def _mtime(transcript: Transcript) -> int:
    """Return the time of the last write, in milliseconds since 1970."""
    return transcript.revision // 1_000


class ClaudeSessionStore(AsyncStore[ClaudeOperations]):
    """Keeps the transcripts of the Claude Agent SDK in MySQL: a `claude_agent_sdk.SessionStore` with all its methods.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to sessions.

    Example:
        ```python
        async with ClaudeSessionStore("mysql://user:password@localhost/app") as store:
            key = {"project_key": "support", "session_id": "6f9619ff-8b86-d011-b42d-00c04fc964ff"}
            await store.append(key, [{"type": "user", "uuid": "u-1", "message": {"role": "user", "content": "Hello"}}])
            assert [entry["uuid"] for entry in await store.load(key)] == ["u-1"]
            options = ClaudeAgentOptions(session_store=store, resume=key["session_id"])
        ```
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(ClaudeOperations(config), database, owned=owned)

    def turn(
        self, key: SessionKey, wait_s: float = 30.0, lease_s: float = 20.0, *, take_over: bool = False
    ) -> AsyncTurn:
        """Allow one turn at a time on a session with all its subpaths, across all processes: an ``async with`` block.

        Everything else is as with `CheckpointStore.turn`.
        """
        owner = self._operations.owner_key(key_of(key))
        return AsyncTurn(self, owner, key["session_id"], wait_s, lease_s, take_over=take_over)

    append = awaited_method(ClaudeOperations.append)
    load = awaited_method(ClaudeOperations.load)
    list_sessions = awaited_method(ClaudeOperations.list_sessions)
    list_session_summaries = awaited_method(ClaudeOperations.list_session_summaries)
    delete = awaited_method(ClaudeOperations.delete)
    list_subkeys = awaited_method(ClaudeOperations.list_subkeys)
