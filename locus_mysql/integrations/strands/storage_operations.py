"""The contract of the framework's `Storage`, as generators that do no I/O: `StorageOperations`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...config import MySQLConfig
from ...engine.operation import Batch, Operation
from ...engine.retry import next_page
from ...families.checkpoints.coding.delta import Delta
from ...families.checkpoints.new_checkpoint import EncodedCheckpoint, NewCheckpoint
from ...families.checkpoints.store import StoreOperations
from .blobs import bytes_of, state_of
from .keys import PREFIX, ThreadAddress, address_of, normalized_key, normalized_prefix, shared_threads_above

Keys: TypeAlias = list[str]

#: Threads that a listing reads at once, and the most snapshots of one agent that it lists.
AT_ONCE, SNAPSHOTS_LIMIT = 1_000, 1_000_000


class StorageOperations:
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

    def below(self, prefix: str) -> StorageOperations:
        """Return the operations on the keys below a prefix, with the same cache."""
        scoped = StorageOperations.__new__(StorageOperations)
        scoped.__dict__ |= self.__dict__
        prefix = normalized_prefix(prefix).rstrip("/")
        scoped.prefix = f"{self.prefix}{prefix}/" if prefix else self.prefix
        return scoped

    def write(self, key: str, data: bytes) -> Operation[None]:
        """Store bytes under a key, and replace those that it had. One round trip.

        Args:
            key: Any text but a backslash, a segment ``..`` and NUL; at most 504 characters with the namespace.
                ``//a///b/`` is ``a/b``.
            data: The bytes. `read` returns the same.

        Raises:
            StorageError: The key is invalid, or the server failed; the bytes under the key are the old or the new ones.
        """
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
            page = yield from self._store.checkpoints.moving.threads_after(
                self._store.tenant, after, glob, limit=AT_ONCE
            )
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
        sql = self._store.checkpoints.context.sql.checkpoints
        for start in range(0, len(shared), AT_ONCE):
            of = {
                one: sql.list_ids(self._store.tenant, one, SNAPSHOTS_LIMIT) for one in shared[start : start + AT_ONCE]
            }
            results = yield Batch(tuple(of.values()), atomic=False)
            keys += [thread + row.checkpoint_id for thread, query in of.items() for row in results.rows(query)]
        return [key.removeprefix(PREFIX) for key in keys]

    def _address(self, key: str) -> ThreadAddress:
        return address_of(self.prefix + normalized_key(key))


def _without_text(delta: Delta) -> tuple[str, bool]:
    """Index no words: the index would take twice the bytes of the content, and `search` does not use it."""
    return "", True
