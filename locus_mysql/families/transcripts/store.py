"""Transcripts without a framework: `TranscriptStore` and `SyncTranscriptStore`."""

from __future__ import annotations

from typing import Unpack

from ...config import ENVIRONMENT, Keywords
from ...runtime.database import Where, share
from ...runtime.stores import AsyncStore, SyncStore, awaited_method, blocking_method
from .operations import TranscriptOperations


class TranscriptStore(AsyncStore[TranscriptOperations]):
    """Conversations as ordered items with ids, and a state that changes together with them.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to transcripts.
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(TranscriptOperations(config), database, owned=owned)

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
