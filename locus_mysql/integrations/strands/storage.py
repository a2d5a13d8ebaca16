"""The storage of Strands Agents, `StrandsStorage`: the bytes under a key as a state of a checkpoint.

A key is a thread with one checkpoint. The snapshots of one agent are the exception: they are checkpoints of one thread,
so that each is delta-coded against the one before it.
"""

from __future__ import annotations

import base64
import binascii
import copy
import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, TypeVar, Unpack

from strands.storage.search import KeywordSearchStrategy
from strands.storage.search.types import SearchStrategy
from strands.storage.storage import _NAMESPACED, StorageSearchResult
from strands.types.exceptions import StorageError

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.operation import Batch, Operation
from ...engine.retry import next_page
from ...errors import CorruptCheckpoint, InvalidInput, LocusMySQLError, TurnLost
from ...families.checkpoints.coding.codec import EncodedState, encode
from ...families.checkpoints.coding.delta import Delta
from ...families.checkpoints.records import EncodedCheckpoint, NewCheckpoint
from ...families.checkpoints.statements.queries import LIST_IDS
from ...families.checkpoints.statements.tables import ThreadKey
from ...families.checkpoints.store import StoreOperations
from ...records.leases import Turns
from ...records.turns import AsyncTurns
from ...runtime.database import Database, Where, share
from ...runtime.exact_json import check_json_object
from ...runtime.stores import awaited_method

#: The beginning of the ids of threads.
PREFIX = "strands/"

#: The id of the only checkpoint of a key.
CONTENT = "content"

#: The folder of an agent's snapshots.
SNAPSHOTS = "/snapshots/"

_SNAPSHOT = re.compile(r"(.+/snapshots/)(snapshot_latest\.json|immutable_history/snapshot_[\w-]{1,64}\.json)", re.ASCII)

#: The ways of writing JSON that can be repeated: those of Python's encoder that Strands uses, the usual one first.
STYLES: Mapping[str, Mapping[str, Any]] = {
    "spaced": {"ensure_ascii": False},
    "compact": {"ensure_ascii": False, "separators": (",", ":")},
    "escaped": {},
    "indented": {"ensure_ascii": False, "indent": 2},
}

#: The fields of a state: the style of JSON, its value, the messages that were taken out of the value; or other content.
STYLE, VALUE, MESSAGES, TEXT, BASE64 = "json", "value", "messages", "text", "base64"

Keys: TypeAlias = list[str]

#: Threads that a listing reads at once, and the most snapshots of one agent that it lists.
AT_ONCE, SNAPSHOTS_LIMIT = 1_000, 1_000_000

T = TypeVar("T")

Results: TypeAlias = list[StorageSearchResult]


def state_of(data: bytes) -> EncodedState:
    """Return bytes as an encoded state."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return encode({BASE64: base64.b64encode(data).decode()})
    return _json_state(text) or encode({TEXT: text})


def bytes_of(state: Mapping[str, Any], key: str) -> bytes:
    """Return the bytes that a state was made of.

    Raises:
        CorruptCheckpoint: The state has another form: another program wrote it.
    """
    try:
        if BASE64 in state:
            return base64.b64decode(state[BASE64], validate=True)
        if TEXT in state:
            return str(state[TEXT]).encode()
        value = state[VALUE]
        if MESSAGES in state:
            value["data"]["messages"] = state[MESSAGES]
        return json.dumps(value, **STYLES[state[STYLE]]).encode()
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise CorruptCheckpoint(f"The state under the key {key!r} was not written by StrandsStorage.") from None


def _json_state(text: str) -> EncodedState | None:
    """Return JSON as a state; None for what is not JSON, or could not be written again as the same text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value = json.loads(text, parse_constant=_refuse)
        style = next((name for name, options in STYLES.items() if json.dumps(value, **options) == text), None)
        if style is None:
            return None
        state = {STYLE: style, **_divided(value)}
        check_json_object(state, "The state")  # as an import does
        return encode(state)
    except (ValueError, RecursionError, InvalidInput):
        return None


def _divided(value: Any) -> dict[str, Any]:
    """Return the value, and apart from it the messages of a snapshot, which are delta-coded as a list of their own."""
    data = value.get("data") if isinstance(value, dict) else None
    if not (isinstance(data, dict) and isinstance(messages := data.get("messages"), list)):
        return {VALUE: value}
    return {MESSAGES: messages, VALUE: {**value, "data": {**data, "messages": None}}}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


class ThreadAddress(NamedTuple):
    """The thread and the checkpoint that hold the bytes of a key."""

    thread_id: str
    checkpoint_id: str

    @property
    def is_shared(self) -> bool:
        """Whether the thread holds the snapshots of an agent, one for each of several keys."""
        return self.thread_id.endswith("/")


def address_of(key: str) -> ThreadAddress:
    """Return the thread and the checkpoint of a normalized key."""
    snapshot = _SNAPSHOT.fullmatch(key)
    return ThreadAddress(PREFIX + snapshot[1], snapshot[2]) if snapshot else ThreadAddress(PREFIX + key, CONTENT)


def shared_threads_above(prefix: str) -> Iterator[str]:
    """Yield the threads of snapshots some of whose keys may begin with a prefix that is longer than the thread."""
    for found in re.finditer(SNAPSHOTS, prefix):
        yield PREFIX + prefix[: found.end()]


def normalized_key(key: str) -> str:
    """Return a key as the framework's own storages do: without slashes at its ends, each run of slashes as one.

    Raises:
        StorageError: It is empty, has a backslash, or a segment ``..``.
    """
    key = _checked(key, "key").strip("/")
    if not key:
        raise StorageError("Storage key must not be empty")
    return key


def normalized_prefix(prefix: str) -> str:
    """Return the beginning of a key. It may be empty, and a slash at its end counts.

    Raises:
        StorageError: It has a backslash, or a segment ``..``.
    """
    return _checked(prefix, "prefix").lstrip("/")


def _checked(text: str, what: str) -> str:
    if "\\" in text:
        raise StorageError(f"Invalid storage {what} '{text}': backslashes are not allowed")
    text = re.sub(r"/+", "/", text)
    if ".." in text.split("/"):
        raise StorageError(f"Invalid storage {what} '{text}': '..' path segments are not allowed")
    return text


class StrandsStorageOperations:
    """Stores the bytes of one tenant's keys.

    Args:
        config: The options. All checkpoints are kept: each is the content of a key.
        prefix: Put before all keys.
    """

    def __init__(self, config: MySQLConfig, prefix: str = "") -> None:
        self.config = config.for_store(keep_checkpoints=None)
        self.prefix = prefix
        self._store = StoreOperations(self.config)
        self.schema = self._store.schema

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        self._store.attach(database)

    @property
    def turns(self) -> Turns:
        """The turns on threads."""
        return self._store.turns

    def thread_key(self, key: str) -> ThreadKey:
        """Return the key of a turn on the bytes under a key, or on all snapshots of an agent by the key of any."""
        return self._store.thread_key(self._address(key).thread_id)

    def below(self, prefix: str) -> StrandsStorageOperations:
        """Return the operations on the keys below a prefix, with the same cache."""
        scoped = StrandsStorageOperations.__new__(StrandsStorageOperations)
        scoped.__dict__ |= self.__dict__
        prefix = normalized_prefix(prefix).rstrip("/")
        scoped.prefix = f"{self.prefix}{prefix}/" if prefix else self.prefix
        return scoped

    def write(self, key: str, data: bytes) -> Operation[None]:
        """Store bytes under a key, and replace those that it had. One round trip."""
        address = self._address(key)
        encoded = EncodedCheckpoint(state_of(bytes(data)))
        new = NewCheckpoint(lambda _: encoded, _without_text, address.checkpoint_id)
        yield from self._store.checkpoints.saving.save(self._store.tenant, address.thread_id, new)

    def read(self, key: str) -> Operation[bytes | None]:
        """Return the bytes under a key; None if there are none. One round trip.

        Args:
            key: The key.

        Raises:
            StorageError: The key is invalid, the server failed, or the stored bytes are damaged.
        """
        address = self._address(key)
        state = yield from self._store.load(address.thread_id, address.checkpoint_id)
        return None if state is None else bytes_of(state, key)

    def delete(self, key: str) -> Operation[None]:
        """Delete the bytes under a key, if there are any. One round trip.

        Args:
            key: The key.

        Raises:
            StorageError: The key is invalid, or the server failed.
        """
        address = self._address(key)
        yield from self._store.delete(address.thread_id, address.checkpoint_id if address.is_shared else None)

    def list(self, query: str = "") -> Operation[Keys]:
        """Return the keys that begin with a prefix, in the order of code points.

        One round trip for each 1,000 keys, and another one if there are snapshots among them.

        Args:
            query: The prefix. It is empty for all keys.

        Raises:
            StorageError: The prefix is invalid, or the server failed.
        """
        prefix = self.prefix + normalized_prefix(query)
        threads = {*shared_threads_above(prefix)}
        glob, after = PREFIX + prefix.replace("*", "?") + "*", PREFIX
        while True:
            page = yield from self._store.checkpoints.queries.threads_after(self._store.tenant, after, glob, AT_ONCE)
            threads.update(page)
            if len(page) < AT_ONCE:
                break
            after = next_page(after, page[-1])
        keys = yield from self._keys_in(sorted(threads))
        return sorted(key[len(self.prefix) :] for key in keys if key.startswith(prefix))

    def _keys_in(self, threads: Sequence[str]) -> Operation[Keys]:
        """Return the keys whose bytes are in these threads."""
        keys = [thread for thread in threads if not ThreadAddress(thread, "").is_shared]
        shared = [thread for thread in threads if ThreadAddress(thread, "").is_shared]
        sql, tenant = self._store.checkpoints.context.sql, self._store.tenant
        for start in range(0, len(shared), AT_ONCE):
            of = {
                one: LIST_IDS(sql, ThreadKey(tenant, one), limit=SNAPSHOTS_LIMIT)
                for one in shared[start : start + AT_ONCE]
            }
            results = yield Batch(tuple(of.values()), atomic=False)
            keys += [thread + row.checkpoint_id for thread, query in of.items() for row in results.rows(query)]
        return [key.removeprefix(PREFIX) for key in keys]

    def _address(self, key: str) -> ThreadAddress:
        return address_of(self.prefix + normalized_key(key))


def _without_text(delta: Delta) -> tuple[str, bool]:
    """Index no words: the index would take twice the bytes of the content, and `search` does not use it."""
    return "", True


class StrandsStorage(AsyncTurns[StrandsStorageOperations]):
    """Keeps bytes under keys in MySQL: a `strands.storage.Storage` for sessions, memories and offloaded contexts.

    A snapshot of an agent is stored as what it adds to the agent's snapshot before it.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        search_strategy: Indexes what is written and searches it. Without one, `search` reads all keys and compares
            words, as the framework's own storages do.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s``, ``compression`` and ``search`` apply.

    Example:
        ```python
        async with StrandsStorage("mysql://user:password@localhost/app") as storage:
            await storage.write("notes/today.md", b"The router blinks.")
            assert await storage.read("notes/today.md") == b"The router blinks."
            assert await storage.list("notes/") == ["notes/today.md"]
        ```
    """

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        search_strategy: SearchStrategy[Any] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(StrandsStorageOperations(config), database, owned=owned)
        self._search_strategy = search_strategy

    async def write(self, key: str, data: bytes) -> None:
        """Store bytes under a key, and replace those that it had. One round trip.

        Args:
            key: Any text but a backslash, a segment ``..`` and NUL; at most 504 characters with the namespace.
                ``//a///b/`` is ``a/b``.
            data: The bytes. `read` returns the same.

        Raises:
            StorageError: The key is invalid, or the server failed; the bytes under the key are the old or the new ones.
        """
        await self._run(self._operations.write(key, data))
        if self._search_strategy is not None:
            try:
                await self._search_strategy.index(self, normalized_key(key), data)
            except Exception as error:
                raise StorageError(f"Wrote '{key}' but indexing failed") from error

    read = awaited_method(StrandsStorageOperations.read)
    delete = awaited_method(StrandsStorageOperations.delete)

    async def search(self, query: str) -> Results:
        """Return the keys whose content fits a query, the best first, with scores and content.

        Args:
            query: A text. Without a search strategy, the score is the number of its words that key and content have.
        """
        return await (self._search_strategy or KeywordSearchStrategy()).search(self, query)

    def namespace(self, prefix: str) -> Self:
        """Return a storage of the keys below a prefix, on the same connections.

        Args:
            prefix: Put before all keys; ``a`` and ``a/`` are the same.
        """
        scoped = copy.copy(self)
        scoped._operations = self._operations.below(prefix)
        scoped._owned = False
        scoped._namespaced = _NAMESPACED  # type: ignore[attr-defined]  # the framework then adds no prefix of its own
        return scoped

    list = awaited_method(StrandsStorageOperations.list)

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        try:
            return await super()._run(operation)
        except TurnLost:
            raise
        except LocusMySQLError as error:
            raise StorageError(str(error)) from error
