"""The saver of plain dicts with history: `MySQLCheckpointSaver` and `SyncMySQLCheckpointSaver`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack

from ...config import ENVIRONMENT, Keywords
from ...engine.operation import Operation
from ...errors import CorruptCheckpoint
from ...runtime.arguments import check_limit, check_pairs, check_text, check_thread_id, encode_metadata
from ...runtime.database import Where, share
from ...runtime.exact_json import check_json_object, decode_json, encode_json, queryable_json
from ...runtime.stores import awaited_method, blocking_method
from .operations import AsyncGraphs, GraphsOfTenants, SyncGraphs, copy_thread
from .payload import naming_checkpoint
from .records import (
    Base,
    CheckpointRecord,
    LoadedGraphCheckpoint,
    LoadedWrite,
    NewGraphCheckpoint,
    NewValue,
    WriteRecord,
)
from .statements import tables
from .statements.tables import check_id
from .values import EncodedValue

#: The codec name of checkpoints that this class encoded.
CODEC = "json"

#: The default namespace. Locus' asynchronous saver calls it so, its synchronous one calls it "".
DEFAULT_NAMESPACE = "default"


class SaverOperations(GraphsOfTenants):
    """The saver's operations, with checkpoints as dicts."""

    def put(
        self,
        *,
        thread_id: str,
        checkpoint_id: str,
        checkpoint_data: dict[str, Any],
        checkpoint_ns: str = DEFAULT_NAMESPACE,
        parent_checkpoint_id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Operation[None]:
        """Store a checkpoint as the newest of its namespace; existing ones stay.

        One round trip; another one if this process neither saved nor loaded the parent.

        Args:
            thread_id: 1 to 512 characters, any but NUL; compared by code point.
            checkpoint_id: 1 to 512 characters. One that exists is accepted again with the same content only.
            checkpoint_data: A dict of JSON values. What is loaded is equal to it, in the same order.
            checkpoint_ns: Of any length. ``""`` is the same as ``"default"``.
            parent_checkpoint_id: The checkpoint this one follows, in the same namespace; it need not exist.
            metadata: A dict of JSON values, at most 65,536 bytes as JSON.

        Raises:
            InvalidInput: An argument cannot be stored exactly.
            CheckpointExists: The namespace has a checkpoint of this id with other content.
            StateTooLarge: A value would exceed the server's ``max_allowed_packet``.
        """
        ns = _namespace(checkpoint_ns)
        check_thread_id(thread_id)
        check_id(checkpoint_id, "Checkpoint id")
        if parent_checkpoint_id is not None:
            check_id(parent_checkpoint_id, "Parent checkpoint id")
        check_json_object(checkpoint_data, "The checkpoint")
        fields = [NewValue(name, None, EncodedValue("json", encode_json(one))) for name, one in checkpoint_data.items()]
        text, _ = encode_metadata(metadata)
        searchable = None if text is None else _searchable(metadata or {})

        def values(base: Base | None) -> Sequence[NewValue]:
            return fields

        new = NewGraphCheckpoint(
            codec=CODEC,
            ns=ns,
            checkpoint_id=checkpoint_id,
            parent_id=parent_checkpoint_id,
            # Metadata that MySQL cannot search is stored whole in another place: it would break searches for other
            # metadata.
            head=EncodedValue("json", b"" if text is None or searchable == text else text.encode()),
            values=values,
            metadata=searchable,
            run_id=None,
            needs=0,
            replace=False,
            token=os.urandom(16),
            digest=_content_digest(fields, parent_checkpoint_id, text),
        )
        tenant = self.tenancy.of(thread_id)
        saving = self.graphs.saving
        base = yield from saving.find_base(tenant, thread_id, ns, parent_checkpoint_id)
        yield from saving.save(tenant, thread_id, new, base or saving.newest_cached(tenant, thread_id, ns))

    def get(
        self, *, thread_id: str, checkpoint_id: str | None = None, checkpoint_ns: str = DEFAULT_NAMESPACE
    ) -> Operation[CheckpointRecord | None]:
        """Return a checkpoint, or the newest of a namespace; None if there is none. One round trip.

        Returns:
            A dict of ``checkpoint_id``, ``checkpoint_ns``, ``parent_checkpoint_id``, ``checkpoint``, ``metadata`` and
            ``created_at``, the server's time as ISO text in UTC.
        """
        ns = _namespace(checkpoint_ns)
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_id(checkpoint_id, "Checkpoint id")
        loaded = yield from self.graphs.loading.load(self.tenancy.of(thread_id), thread_id, ns, checkpoint_id)
        return None if loaded is None else _record(loaded)

    def list_checkpoints(
        self, *, thread_id: str, checkpoint_ns: str | None = None, limit: int = 10, before: str | None = None
    ) -> Operation[list[CheckpointRecord]]:
        """Return checkpoints, newest first, each in the form of `get`. One round trip.

        Args:
            thread_id: The thread.
            checkpoint_ns: Only of this namespace; None for all.
            limit: The maximum number.
            before: The id of a checkpoint: only those older than it; no checkpoint is older than a missing one. Name
                the namespace if several have a checkpoint of this id.

        Raises:
            CorruptCheckpoint: Another store saved the thread, such as LangGraph's.
        """
        ns = None if checkpoint_ns is None else _namespace(checkpoint_ns)
        check_thread_id(thread_id)
        if before is not None:
            check_id(before, "Checkpoint id")
        page, _ = yield from self.graphs.loading.page(
            self.tenancy.of(thread_id),
            thread_id,
            check_limit(limit),
            ns=ns,
            before=None if before is None else (ns, before),
        )
        return [_record(loaded) for loaded in page]

    def put_writes(
        self,
        *,
        thread_id: str,
        checkpoint_id: str,
        task_id: str,
        writes: Iterable[tuple[str, Any]],
        checkpoint_ns: str = DEFAULT_NAMESPACE,
    ) -> Operation[None]:
        """Store all writes of a task at a checkpoint, in place of its writes stored before. One round trip.

        Args:
            thread_id: The thread.
            checkpoint_id: The checkpoint; it need not exist yet.
            task_id: 1 to 512 characters.
            writes: Pairs of a channel's name and a JSON value, in order.
            checkpoint_ns: The namespace.

        Raises:
            InvalidInput: A value cannot be stored exactly.
        """
        ns = _namespace(checkpoint_ns)
        check_thread_id(thread_id)
        checkpoint_key = tables.checkpoint_key(ns, check_id(checkpoint_id, "Checkpoint id"))
        check_id(task_id, "Task id")
        pairs = []
        for channel, value in check_pairs(writes, "writes"):
            check_json_object({"value": value}, f"The write to {check_text(channel, 'A channel')!r:.60}")
            pairs.append([channel, value])
        row = LoadedWrite(task_id, 0, "", "", EncodedValue(CODEC, encode_json(pairs)))
        tenant = self.tenancy.of(thread_id)
        yield from self.graphs.saving.put_writes(tenant, thread_id, checkpoint_key, task_id, [row], replace=True)

    def get_writes(
        self,
        *,
        thread_id: str,
        checkpoint_id: str,
        checkpoint_ns: str = DEFAULT_NAMESPACE,
        task_id: str | None = None,
    ) -> Operation[list[WriteRecord]]:
        """Return the writes of all tasks, or of one, at a checkpoint, by task and index. One round trip.

        Returns:
            Dicts of ``task_id``, ``idx`` (from 0), ``channel`` and ``value``.
        """
        ns = _namespace(checkpoint_ns)
        check_thread_id(thread_id)
        checkpoint_key = tables.checkpoint_key(ns, check_id(checkpoint_id, "Checkpoint id"))
        if task_id is not None:
            check_id(task_id, "Task id")
        reading = self.graphs.loading.writes(self.tenancy.of(thread_id), thread_id, checkpoint_key, task_id)
        with naming_checkpoint(thread_id, checkpoint_id):
            stored = yield from reading
        return [
            WriteRecord(task_id=write.task_id, idx=idx, channel=channel, value=value)
            for write in sorted(stored, key=lambda write: write.task_id)
            for idx, (channel, value) in enumerate(_pairs(write, thread_id))
        ]

    def delete_thread(self, thread_id: str) -> Operation[bool]:
        """Delete a thread with all its checkpoints and writes; True if there was one. One round trip."""
        check_thread_id(thread_id)
        return (yield from self.graphs.removing.delete_thread(self.tenancy.of(thread_id), thread_id))

    def delete_checkpoint(
        self, *, thread_id: str, checkpoint_id: str, checkpoint_ns: str = DEFAULT_NAMESPACE
    ) -> Operation[bool]:
        """Delete a checkpoint with its writes; True if there was one. Others can still be loaded. One round trip."""
        ns = _namespace(checkpoint_ns)
        check_thread_id(thread_id)
        check_id(checkpoint_id, "Checkpoint id")
        removing = self.graphs.removing
        return (yield from removing.delete_checkpoint(self.tenancy.of(thread_id), thread_id, ns, checkpoint_id))

    def list_threads(self, limit: int = 100, pattern: str = "*", offset: int = 0) -> Operation[list[str]]:
        """Return the ids of threads, most recently saved first.

        Args:
            limit: The maximum number.
            pattern: A glob: ``*`` matches any text, ``?`` one character, anything else itself.
            offset: The number of threads to skip.
        """
        check_text(pattern, "Pattern")
        limit, offset = check_limit(limit), check_limit(offset, "offset")
        return (yield from self.graphs.list_threads(self.tenancy.of(), limit, pattern, offset))

    def count(self, pattern: str = "*") -> Operation[int]:
        """Return the number of threads that match a glob."""
        return (yield from self.graphs.count(self.tenancy.of(), check_text(pattern, "Pattern")))

    def copy_thread(self, source_thread_id: str, dest_thread_id: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints and writes, on the server; False if there is none.

        Raises:
            ThreadExists: The destination has checkpoints; nothing was changed.
        """
        check_thread_id(source_thread_id)
        check_thread_id(dest_thread_id)
        tenant = self.tenancy.of(source_thread_id)
        return (yield from copy_thread(self.graphs, tenant, source_thread_id, dest_thread_id))

    def prune(self, *, thread_id: str, keep: int = 1, checkpoint_ns: str | None = None) -> Operation[int]:
        """Delete all but the newest checkpoints; returns the number of deleted ones. One round trip.

        Args:
            thread_id: The thread.
            keep: How many are kept in each namespace.
            checkpoint_ns: Only of this namespace; None for all.
        """
        check_thread_id(thread_id)
        check_limit(keep, "keep", 1)
        ns = None if checkpoint_ns is None else _namespace(checkpoint_ns)
        return (yield from self.graphs.removing.prune(self.tenancy.of(thread_id), thread_id, keep, ns))

    def vacuum(self, older_than_days: float = 30) -> Operation[int]:
        """Delete checkpoints older than this many days; returns their number.

        Threads that have expired, or were not saved for that long, are deleted; others keep the newest checkpoint of
        each namespace. Locks one thread at a time, so writers wait for one thread at most.
        """
        (removed,) = yield from self.graphs.maintenance.vacuum(self.tenancy.of(), older_than_days)
        return removed.number


class MySQLCheckpointSaver(AsyncGraphs[SaverOperations]):
    """Every checkpoint of a thread and the writes of its tasks, with the methods of Locus' savers with history.

    Args:
        where: A `Database` shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        tenant_of: ``(thread_id) -> tenant``, for thread ids that contain it.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.

    Example:
        ```python
        async with MySQLCheckpointSaver("mysql://user:password@localhost/app") as saver:
            await saver.put(thread_id="t", checkpoint_id="1", checkpoint_data={"step": 1})
            await saver.put(thread_id="t", checkpoint_id="2", checkpoint_data={"step": 2}, parent_checkpoint_id="1")
            assert (await saver.get(thread_id="t"))["checkpoint"] == {"step": 2}
            assert [found["checkpoint_id"] for found in await saver.list_checkpoints(thread_id="t")] == ["2", "1"]
        ```
    """

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        tenant_of: Callable[[str], str] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(SaverOperations(config, tenant_of), database, owned=owned)

    put = awaited_method(SaverOperations.put)
    get = awaited_method(SaverOperations.get)
    list_checkpoints = awaited_method(SaverOperations.list_checkpoints)
    put_writes = awaited_method(SaverOperations.put_writes)
    get_writes = awaited_method(SaverOperations.get_writes)
    delete_thread = awaited_method(SaverOperations.delete_thread)
    delete_checkpoint = awaited_method(SaverOperations.delete_checkpoint)
    list_threads = awaited_method(SaverOperations.list_threads)
    count = awaited_method(SaverOperations.count)
    copy_thread = awaited_method(SaverOperations.copy_thread)
    prune = awaited_method(SaverOperations.prune)
    vacuum = awaited_method(SaverOperations.vacuum)


class SyncMySQLCheckpointSaver(SyncGraphs[SaverOperations]):
    """`MySQLCheckpointSaver` without an event loop: the same methods, blocking. Safe to share between threads.

    Args:
        where: A `Database` shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        tenant_of: As for `MySQLCheckpointSaver`.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.
    """

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        tenant_of: Callable[[str], str] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(SaverOperations(config, tenant_of), database, owned=owned)

    put = blocking_method(SaverOperations.put)
    get = blocking_method(SaverOperations.get)
    list_checkpoints = blocking_method(SaverOperations.list_checkpoints)
    put_writes = blocking_method(SaverOperations.put_writes)
    get_writes = blocking_method(SaverOperations.get_writes)
    delete_thread = blocking_method(SaverOperations.delete_thread)
    delete_checkpoint = blocking_method(SaverOperations.delete_checkpoint)
    list_threads = blocking_method(SaverOperations.list_threads)
    count = blocking_method(SaverOperations.count)
    copy_thread = blocking_method(SaverOperations.copy_thread)
    prune = blocking_method(SaverOperations.prune)
    vacuum = blocking_method(SaverOperations.vacuum)


def _searchable(metadata: dict[str, Any]) -> str | None:
    """Return the pairs of metadata that MySQL can search, as JSON."""
    whole = queryable_json(metadata)
    if whole is not None:
        return whole
    return queryable_json({name: value for name, value in metadata.items() if queryable_json({name: value})})


def _namespace(value: object) -> str:
    return check_text(value, "Checkpoint namespace") or DEFAULT_NAMESPACE


def _content_digest(fields: Sequence[NewValue], parent_id: str | None, metadata: str | None) -> bytes:
    """Return 15 bytes that are the same for the same content, so that saving it again is no conflict."""
    digest = hashlib.sha256(json.dumps([parent_id, metadata]).encode(), usedforsecurity=False)
    for name, _, encoded in fields:
        assert encoded is not None  # noqa: S101 - for the type checker: these are all encoded
        digest.update(json.dumps([name, len(encoded.data)]).encode())
        digest.update(encoded.data)
    return digest.digest()[:15]


def _record(loaded: LoadedGraphCheckpoint) -> CheckpointRecord:
    _check_codec(loaded.codec, loaded.thread_id)
    metadata = loaded.metadata if not loaded.head.data else bytes(loaded.head.data)
    return CheckpointRecord(
        checkpoint_id=loaded.checkpoint_id,
        checkpoint_ns=loaded.ns,
        parent_checkpoint_id=loaded.parent_id,
        checkpoint={name: decode_json(encoded.data) for name, encoded in loaded.values().items()},
        metadata=json.loads(metadata) if metadata else {},
        created_at=loaded.created_at.isoformat(),
    )


def _pairs(write: LoadedWrite, thread_id: str) -> list[tuple[str, Any]]:
    _check_codec(write.value.kind, thread_id)
    return [(channel, value) for channel, value in decode_json(write.value.data)]


def _check_codec(codec: str, thread_id: str) -> None:
    if codec != CODEC:
        raise CorruptCheckpoint(
            f"Thread {thread_id!r} has checkpoints that another store saved, such as LangGraph's. Give each its own "
            "tenant, table_prefix or thread ids."
        )
