"""`Inspector`: reads the stored data of a tenant, of every family."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, Self, TypeVar, Unpack

from ..config import ENVIRONMENT, Keywords
from ..dialect import Schema
from ..dialect.schema import describe_all
from ..engine.bootstrap import DDLMode, check_layout, is_of_family
from ..engine.operation import Batch, Operation, Results, drive_awaited, fetch
from ..errors import CorruptCheckpoint, InvalidInput, NotFound
from ..families.family import Family
from ..families.inspection.conversation import messages_of, part_of_conversation
from ..families.inspection.item_records import Growth, ItemHit, ItemRow, ItemView, NamespaceRow
from ..families.inspection.owners import OwnerThreads
from ..families.inspection.records import (
    CheckpointRow,
    Difference,
    Hit,
    Page,
    SessionRow,
    SessionView,
    StateView,
    Statistics,
    Tagged,
    ThreadPreview,
    ThreadRow,
    Turn,
    Window,
)
from ..families.inspection.sources import PAGE_LIMIT, Deferred, ThreadFilter
from ..families.inspection.status import status_of
from ..families.memories.embedding import EmbedFunction, EmbedTexts, embed_awaited
from ..families.memories.inspection import Memories
from ..families.memories.searching import Way
from ..families.memories.vectors.coding import Metric
from ..families.registry import families, find_family
from ..families.working.inspection import Sessions
from ..records.maintenance import Counts
from ..runtime.arguments import check_thread_id, tenant_of
from ..runtime.database import Where, share
from ..runtime.sealing import fetching_keys
from .differences import difference

T = TypeVar("T")


class Inspector:
    """Reads the stored data of a tenant as plain values. It changes nothing and creates no tables.

    Damaged data never makes a list fail: an unreadable entry is returned with its damage and advice.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        embed: Embeds the queries of searches in long-term memory; without it, these are by word.
        dims: The number of dimensions of its embeddings.
        metric: As for `MemoryStore`.
        model: The name of its model, as for `MemoryStore`.
        options: Options of `MySQLConfig`; with a `Database`, those of a store, such as ``tenant``.
    """

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        embed: EmbedFunction | None = None,
        dims: int | None = None,
        metric: Metric = "cosine",
        model: str = "",
        **options: Unpack[Keywords],
    ) -> None:
        self.database, self.config, self._owned = share(None, where, options)
        self._families: Mapping[str, Family] = {family.name: family for family in families()}
        self._threads: Mapping[str, OwnerThreads] = {
            name: source
            for name, family in self._families.items()
            if (source := family.inspection(self.config)) is not None
        }
        self._memories = Memories(self.config, embed=embed, dims=dims, metric=metric, model=model)
        self._embed = embed
        self._sessions = Sessions(self.config)

    @property
    def embeds(self) -> bool:
        """Whether long-term memory can be searched by meaning."""
        return self._embed is not None

    async def families(self) -> list[str]:
        """Return the names of the families whose tables exist, in a fixed order. One round trip.

        Raises:
            OlderLayout, NewerLayout: Tables of a family are those of another version.
        """
        schemas = {name: family.schema(self.config) for name, family in self._families.items()}
        tables = await self._send(fetch(describe_all(tuple(schemas.values()))))
        comments = {table.name.casefold(): table.comment or "" for table in tables}
        return [name for name, schema in schemas.items() if self._has_tables(schema, comments)]

    def _has_tables(self, schema: Schema, comments: Mapping[str, str]) -> bool:
        own = {
            name: comment for name in schema.names if is_of_family(schema, comment := comments.get(name.casefold(), ""))
        }
        for name, comment in own.items():
            check_layout(self.config, schema, name, comment)
        return len(own) == len(schema.names)

    async def threads(
        self,
        family: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        pattern: str = "*",
        metadata: tuple[str, Any] | None = None,
        min_bytes: int | None = None,
        saved_after: datetime | None = None,
        saved_before: datetime | None = None,
    ) -> Page[ThreadRow]:
        """Return a page of threads, last saved first.

        A page examines a bounded number of threads. So with filters that few threads pass, it may contain fewer than
        ``limit`` threads, or none, and still have a cursor to continue with.

        Args:
            family: The family.
            limit: The maximum number of threads to return, up to 1,000.
            cursor: The cursor of the previous page.
            pattern: A glob of their ids: ``*`` matches any text, ``?`` one character; others match themselves.
            metadata: A top-level key, and a value that the metadata of the newest checkpoint contains under it.
            min_bytes: Their smallest size.
            saved_after: They were last saved then or later; a time with a time zone.
            saved_before: They were last saved before.

        Raises:
            InvalidInput: The cursor is invalid, or an argument is of the wrong type.
            SchemaMismatch: The family has no tables.
        """
        wanted = ThreadFilter(pattern, metadata, min_bytes, saved_after, saved_before)
        source = self._source(family)
        return await self._run(source, source.threads(wanted, limit, cursor))

    async def thread(self, family: str, thread_id: str) -> ThreadRow | None:
        """Return a thread; None if it does not exist."""
        source = self._source(family)
        return await self._run(source, source.thread(thread_id))

    async def previews(self, family: str, thread_ids: Sequence[str]) -> Mapping[str, ThreadPreview]:
        """Return status, first and last message of threads, by their ids, as far as they can be read cheaply.

        One or two round trips for all of them. Threads whose rows are damaged or very large may be missing.

        Args:
            family: The family.
            thread_ids: At most 1,000 threads.
        """
        source = self._source(family)
        if len(thread_ids) > PAGE_LIMIT:
            raise InvalidInput(f"Previews of {len(thread_ids)} threads were requested; the limit is {PAGE_LIMIT:,}.")
        checked = [check_thread_id(thread_id) for thread_id in thread_ids]
        return await self._compute(await self._run(source, source.previews(checked)))

    async def history(
        self,
        family: str,
        thread_id: str,
        *,
        limit: int = 200,
        cursor: str | None = None,
        at: datetime | None = None,
    ) -> Page[CheckpointRow]:
        """Return a page of a thread's checkpoints, newest first; an empty one if the thread does not exist.

        Args:
            family: The family.
            thread_id: The thread.
            limit: The maximum number of checkpoints to return, up to 1,000.
            cursor: The cursor of the previous page.
            at: Only checkpoints saved until this time, which has a time zone.
        """
        source = self._source(family)
        return await self._run(source, source.history(thread_id, limit, cursor, at))

    async def state(
        self,
        family: str,
        thread_id: str,
        checkpoint_id: str | None = None,
        *,
        namespace: str = "",
        at: datetime | None = None,
        window: Window | None = None,
    ) -> StateView | None:
        """Return the state of a checkpoint; None if it does not exist.

        Args:
            family: The family.
            thread_id: The thread.
            checkpoint_id: The checkpoint; if None, the newest.
            namespace: The checkpoint namespace of a graph.
            at: Only checkpoints saved until this time, which has a time zone: the newest is what the agent knew then.
            window: Return only these messages of a long conversation of a graph: ``messages`` contains them,
                ``before`` and ``after`` count the others, and long lists of ``state`` are sequences that decode an
                item on access.
        """
        source = self._source(family)
        made = await self._run(source, source.state(thread_id, checkpoint_id, namespace, at, partly=window is not None))
        if made is None:
            return None
        return await self._compute(_with_messages, made, window)

    async def differences(
        self, family: str, thread_id: str, before_id: str, after_id: str, *, namespace: str = ""
    ) -> Difference:
        """Compare two checkpoints of a thread, whichever is the older.

        Raises:
            NotFound: One of them does not exist.
            CorruptCheckpoint: One of them cannot be read.
        """
        source, views = self._source(family), []
        for checkpoint_id in (before_id, after_id):
            made = await self._run(source, source.state(thread_id, checkpoint_id, namespace, None))
            if made is None:
                raise NotFound(
                    f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}. Its history lists those that it has."
                )
            view = await self._compute(made)
            if view.damage is not None:
                raise CorruptCheckpoint(view.damage)
            views.append(view)
        return await self._compute(difference, *views)

    async def states(self, family: str, thread_id: str, limit: int = 100, *, at: datetime | None = None) -> list[Turn]:
        """Return confidence, tokens and iterations of the newest states of a thread, oldest first.

        Reads only the first bytes of each row, which costs little even for many states. Damaged states have no numbers.

        Args:
            family: The family.
            thread_id: The thread.
            limit: The maximum number of states to return, up to 1,000.
            at: Only checkpoints saved until this time, which has a time zone.
        """
        source = self._source(family)
        return await self._compute(await self._run(source, source.turns(thread_id, limit, at)))

    async def search(self, query: str, *, family: str = "agents", limit: int = 20) -> list[Hit]:
        """Return checkpoints whose messages contain words, best first.

        MySQL ignores words under three letters.

        Raises:
            InvalidInput: The tables have no full-text index.
        """
        source = self._source(family)
        return await self._compute(await self._run(source, source.search(query, limit)))

    async def by_metadata(self, key: str, value: Any, *, family: str = "agents", limit: int = 50) -> list[Tagged]:
        """Return checkpoints whose metadata contains a value under a top-level key, newest first.

        For a pair that more than 3,000 checkpoints have, and for graphs, whose metadata has no index, this searches
        the 20 newest checkpoints of each of the 1,000 threads saved last.
        """
        source = self._source(family)
        return await self._run(source, source.by_metadata(key, value, limit))

    async def statistics(self, family: str) -> Statistics:
        """Return the number of threads of a family, their sizes, and its growth.

        Exact for a few thousand threads. For more, all threads are counted, and the rest is estimated from a sample:
        ``sampled`` is its size. A million threads take one to two seconds. Of payloads, it reads the first bytes of at
        most 200.
        """
        source = self._source(family)
        return await self._run(source, source.statistics())

    async def stored(self, family: str) -> Counts:
        """Count what the tenant has stored in the tables of a family, such as threads or items.

        Raises:
            InvalidInput: There is no such family.
            SchemaMismatch: The family has no tables.
        """
        found = find_family(family)
        stored = found.maintenance(self.config).stored(tenant_of(self.config))
        return await self._send(stored, found.schema(self.config), "validate")

    async def growth(self, family: str) -> Growth | None:
        """Return the entries of a family without threads by the day of their creation; None if these are not known."""
        source = self._threads.get(family)
        return None if source is None else await self._send(source.growth(), source.schema, "validate")

    def turns_at_once(self, family: str) -> int:
        """Return the number of turns that a page reads to find when each message was first saved."""
        return self._source(family).turns_at_once

    async def changed(self, watched: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Return, for each thread that exists, a text that every write to it changes. One round trip.

        Args:
            watched: Families and thread ids. The tables of these families must exist.
        """
        wanted: dict[str, list[str]] = {}
        for family, thread_id in dict.fromkeys(watched):
            wanted.setdefault(family, []).append(check_thread_id(thread_id))
        if not wanted:
            return {}
        queries = {family: self._source(family).markers(ids) for family, ids in wanted.items()}
        results = await self._send(_asked(Batch(tuple(queries.values()), atomic=False)))
        return {
            (family, row.thread_id): row.marker.hex() if isinstance(row.marker, bytes) else row.marker
            for family, query in queries.items()
            for row in results.rows(query)
        }

    async def namespaces(
        self, prefix: Sequence[str] = (), *, limit: int = 100, cursor: str | None = None
    ) -> Page[NamespaceRow]:
        """Return the namespaces of long-term memory that have items, sorted.

        Args:
            prefix: The first labels; empty for all.
            limit: The maximum number of namespaces to return.
            cursor: The cursor of the previous page.
        """
        return await self._run(self._memories, self._memories.namespaces(prefix, limit=limit, cursor=cursor))

    async def items(self, namespace: Sequence[str], *, limit: int = 100, cursor: str | None = None) -> Page[ItemRow]:
        """Return items of exactly one namespace of long-term memory, sorted by key."""
        return await self._run(self._memories, self._memories.items(namespace, limit=limit, cursor=cursor))

    async def item(self, namespace: Sequence[str], key: str) -> ItemView | None:
        """Return an item of long-term memory; None if it does not exist. Reading it here does not refresh it."""
        return await self._run(self._memories, self._memories.item(namespace, key))

    async def search_memories(
        self, query: str, namespace_prefix: Sequence[str] = (), *, limit: int = 20, way: Way | None = None
    ) -> list[ItemHit]:
        """Search a namespace and those below it, and return the items found, best first.

        Args:
            query: The query.
            namespace_prefix: The first labels; empty for all.
            limit: The maximum number of items to return.
            way: ``word``, ``meaning`` or ``hybrid``; by default by meaning if ``embed`` was given.

        Raises:
            InvalidInput: A search by meaning without ``embed``, or one by word without a full-text index.
        """

        async def answer(step: EmbedTexts | Operation[Any]) -> Any:
            if isinstance(step, EmbedTexts):
                return await self._embedded(step)
            return await self._run(self._memories, step)

        return await drive_awaited(self._memories.search(query, namespace_prefix, limit=limit, way=way), answer)

    async def sessions(self, *, limit: int = 100, cursor: str | None = None, pattern: str = "*") -> Page[SessionRow]:
        """Return sessions of working memory on MySQL, in the order of their ids.

        Args:
            limit: The maximum number of sessions to return.
            cursor: The cursor of the previous page.
            pattern: A glob of their ids.
        """
        return await self._run(self._sessions, self._sessions.sessions(limit=limit, cursor=cursor, pattern=pattern))

    async def session(self, session_id: str) -> SessionView | None:
        """Return the content of a session; None if it does not exist. This neither renews it nor uses its variables."""
        return await self._run(self._sessions, self._sessions.session(session_id))

    async def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones."""
        if self._owned:
            await self.database.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _source(self, family: str) -> OwnerThreads:
        source = self._threads.get(family)
        if source is None:
            raise InvalidInput(
                f"There are no threads of {family!r:.50}; there are those of {', '.join(self._threads)}."
            )
        return source

    async def _run(self, source: HasTables, operation: Operation[T]) -> T:
        return await self._send(fetching_keys(operation, self.config), source.schema, "validate")

    async def _send(self, operation: Operation[T], schema: Schema | None = None, ddl_mode: DDLMode = "create") -> T:
        """Run an operation."""
        return await self.database.asynchronous.run(operation, schema, ddl_mode)

    async def _compute(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do work that may take seconds for a very long conversation, which must not block the event loop."""
        return await asyncio.to_thread(work, *arguments)

    async def _embedded(self, step: EmbedTexts) -> Sequence[Any]:
        """Embed queries."""
        assert self._embed is not None  # noqa: S101 - a search asks for it only where there is one
        return await embed_awaited(self._embed, step)


class HasTables(Protocol):
    """A part of the inspector that needs tables."""

    @property
    def schema(self) -> Schema:
        """Its tables."""


def _with_messages(made: Deferred[StateView], window: Window | None) -> StateView:
    """Return a state with its status and its conversation, or with a window of it."""
    view = made()
    if window is None:
        messages, before, after = messages_of(view.state), 0, 0
    else:
        messages, before, after = part_of_conversation(view.state, window)
    last = part_of_conversation(view.state, Window(1))[0] if after else messages[-1:]
    status = status_of(view.state, last, view.writes, view.checkpoint.metadata)
    return replace(view, messages=messages, before=before, after=after, status=status)


def _asked(batch: Batch) -> Operation[Results]:
    """Return the results of a batch."""
    return (yield batch)
