"""Transcripts without a framework: `TranscriptStore` and `SyncTranscriptStore`."""

from __future__ import annotations

from typing import Unpack

from ...config import ENVIRONMENT, Keywords
from ...records.turns import AsyncTurn, SyncTurn
from ...runtime.database import Where, share
from ...runtime.stores import AsyncStore, SyncStore, awaited_method, blocking_method
from .operations import TranscriptOperations
from .records import TranscriptKey


class TranscriptStore(AsyncStore[TranscriptOperations]):
    """Conversations as ordered items with ids, and a state that changes together with them.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to transcripts.
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(TranscriptOperations(config), database, owned=owned)

    def turn(
        self, key: TranscriptKey, wait_s: float = 30.0, lease_s: float = 20.0, *, take_over: bool = False
    ) -> AsyncTurn:
        """Allow one turn at a time on a transcript and its parts, across all processes; see `CheckpointStore.turn`.

        Calls of other stores of the same `Database` in the block belong to it, too, such as a framework's.
        """
        return AsyncTurn(self, self._operations.owner_key(key), key.name, wait_s, lease_s, take_over=take_over)

    append = awaited_method(TranscriptOperations.append)
    write = awaited_method(TranscriptOperations.write)
    get = awaited_method(TranscriptOperations.get)
    get_all = awaited_method(TranscriptOperations.get_all)
    read = awaited_method(TranscriptOperations.read)
    open = awaited_method(TranscriptOperations.open)
    find = awaited_method(TranscriptOperations.find)
    holding = awaited_method(TranscriptOperations.holding)
    replace = awaited_method(TranscriptOperations.replace)
    pop = awaited_method(TranscriptOperations.pop)
    clear = awaited_method(TranscriptOperations.clear)
    delete = awaited_method(TranscriptOperations.delete)
    delete_if = awaited_method(TranscriptOperations.delete_if)
    list_transcripts = awaited_method(TranscriptOperations.list_transcripts)
    recent = awaited_method(TranscriptOperations.recent)
    count = awaited_method(TranscriptOperations.count)
    sweep = awaited_method(TranscriptOperations.sweep)
    forget_tenant = awaited_method(TranscriptOperations.forget_tenant)


class SyncTranscriptStore(SyncStore[TranscriptOperations]):
    """`TranscriptStore` without an event loop: the same methods, blocking. Safe to share between threads.

    Args:
        where: See `TranscriptStore`.
        options: Options of `MySQLConfig`.
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(TranscriptOperations(config), database, owned=owned)

    def turn(
        self, key: TranscriptKey, wait_s: float = 30.0, lease_s: float = 20.0, *, take_over: bool = False
    ) -> SyncTurn:
        """Allow one turn at a time on a transcript and its parts; see `TranscriptStore.turn`."""
        return SyncTurn(self, self._operations.owner_key(key), key.name, wait_s, lease_s, take_over=take_over)

    append = blocking_method(TranscriptOperations.append)
    write = blocking_method(TranscriptOperations.write)
    get = blocking_method(TranscriptOperations.get)
    get_all = blocking_method(TranscriptOperations.get_all)
    read = blocking_method(TranscriptOperations.read)
    open = blocking_method(TranscriptOperations.open)
    find = blocking_method(TranscriptOperations.find)
    holding = blocking_method(TranscriptOperations.holding)
    replace = blocking_method(TranscriptOperations.replace)
    pop = blocking_method(TranscriptOperations.pop)
    clear = blocking_method(TranscriptOperations.clear)
    delete = blocking_method(TranscriptOperations.delete)
    delete_if = blocking_method(TranscriptOperations.delete_if)
    list_transcripts = blocking_method(TranscriptOperations.list_transcripts)
    recent = blocking_method(TranscriptOperations.recent)
    count = blocking_method(TranscriptOperations.count)
    sweep = blocking_method(TranscriptOperations.sweep)
    forget_tenant = blocking_method(TranscriptOperations.forget_tenant)
