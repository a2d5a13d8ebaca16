"""Looking inside what is kept, of every family: `Inspector`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, Self, TypeVar, Unpack

from pydantic import SecretStr

from ..config import Keywords, MySQLConfig
from ..dialect import Schema
from ..dialect.schema import describe_all
from ..engine.operation import Batch, Operation
from ..errors import CorruptCheckpoint, InvalidInput, NotFound
from ..families.memories.embedding import EmbedFunction, Texts, embed_awaited
from ..families.memories.searching import Way
from ..families.memories.vectors.scoring import Metric
from ..runtime.arguments import check_thread_id
from ..runtime.bounded_executor import BoundedExecutor
from ..runtime.database import Database, share
from ..runtime.generators import drive_awaited
from .checkpoints import CheckpointThreads
from .conversation import messages_of, part_of_conversation
from .differing import difference
from .graphs import GraphThreads
from .memories import Memories
from .records import (
    CheckpointRow,
    Difference,
    Hit,
    ItemHit,
    ItemRow,
    ItemView,
    NamespaceRow,
    Page,
    SessionRow,
    SessionView,
    StateView,
    Statistics,
    Tagged,
    ThreadFamily,
    ThreadRow,
    Turn,
    Window,
)
from .sessions import Sessions
from .sources import Made, ThreadSource, Wanted

T = TypeVar("T")

#: Where differences are worked out.
COMPARING = BoundedExecutor("locus-mysql differences", threads=2)


class Inspector:
    """What a tenant keeps, as plain values to be shown. It only reads, and makes no tables.

    Damage never breaks a list: what cannot be read is shown as damaged, with what to do.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        embed: Embeds the queries of searches in long-term memory; without it, these are by word.
        dims: The width of its embeddings.
        metric: As for `MemoryStore`.
        options: Options of `MySQLConfig`; with a `Database`, those of a store, such as ``tenant``.
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        embed: EmbedFunction | None = None,
        dims: int | None = None,
        metric: Metric = "cosine",
        **options: Unpack[Keywords],
    ) -> None:
        self.database, self.config, self._owned = share(where, options)
        #: What there may be of threads, by family.
        self._threads: Mapping[ThreadFamily, ThreadSource] = {
            "agents": CheckpointThreads(self.config, "agents"),
            "dicts": CheckpointThreads(self.config, "dicts"),
            "current": CheckpointThreads(self.config, "current"),
            "versions": GraphThreads(self.config),
        }
        self._memories = Memories(self.config, embed=embed, dims=dims, metric=metric)
        self._embed = embed
        self._sessions = Sessions(self.config)

    @property
    def embeds(self) -> bool:
        """Whether long-term memory can be searched by meaning."""
        return self._embed is not None

    async def families(self) -> list[str]:
        """The families whose tables are there, in a fixed order. One round trip."""
        schemas = self._schemas()
        (found,) = await self.database.asynchronous.run(_asked(Batch.of(describe_all(tuple(schemas.values())))))
        there = {(str(name).casefold(), str(comment)) for name, comment in found.rows}
        return [
            family
            for family, schema in schemas.items()
            if there.issuperset((name.casefold(), schema.comment) for name in schema.names)
        ]

    async def threads(
        self,
        family: ThreadFamily,
        *,
        limit: int = 50,
        cursor: str | None = None,
        pattern: str = "*",
        metadata: tuple[str, Any] | None = None,
        min_bytes: int | None = None,
        saved_after: datetime | None = None,
        saved_before: datetime | None = None,
    ) -> Page[ThreadRow]:
        """A page of threads, last saved first.

        However many threads there are, a page looks at a bounded number of them. So a page with filters that few
        threads pass may hold fewer than ``limit``, or none, and yet have a cursor to go on with.

        Args:
            family: Which threads.
            limit: At most this many, and at most 1,000.
            cursor: Of the page before.
            pattern: A glob of their ids: ``*`` stands for any text, ``?`` for one character, all else for itself.
            metadata: A top-level key, and a value that the metadata of the newest checkpoint contains under it.
            min_bytes: What they take at least.
            saved_after: They were last saved then or later; a time with a time zone.
            saved_before: They were last saved before.

        Raises:
            InvalidInput: The cursor is none, or an argument is of another type.
            SchemaMismatch: The family has no tables.
        """
        wanted = Wanted(pattern, metadata, min_bytes, saved_after, saved_before)
        source = self._source(family)
        return await self._run(source, source.threads(wanted, limit, cursor))

    async def thread(self, family: ThreadFamily, thread_id: str) -> ThreadRow | None:
        """One thread; None if it is not there."""
        source = self._source(family)
        return await self._run(source, source.thread(thread_id))

    async def history(
        self,
        family: ThreadFamily,
        thread_id: str,
        *,
        limit: int = 200,
        cursor: str | None = None,
        at: datetime | None = None,
    ) -> Page[CheckpointRow]:
        """A page of a thread's checkpoints, newest first; empty if there is no such thread.

        Args:
            family: Which threads.
            thread_id: The thread.
            limit: At most this many, and at most 1,000.
            cursor: Of the page before.
            at: Only what was saved by then, a time with a time zone.
        """
        source = self._source(family)
        return await self._run(source, source.history(thread_id, limit, cursor, at))

    async def state(
        self,
        family: ThreadFamily,
        thread_id: str,
        checkpoint_id: str | None = None,
        *,
        namespace: str = "",
        at: datetime | None = None,
        window: Window | None = None,
    ) -> StateView | None:
        """A state as it was; None if it is not there.

        Args:
            family: Which threads.
            thread_id: The thread.
            checkpoint_id: The checkpoint; if None, the newest.
            namespace: The checkpoint namespace of a graph.
            at: Only what was saved by then, a time with a time zone: the newest of these is what the agent knew then.
            window: Of a long conversation of a graph, only these messages: ``messages`` has them, ``before`` and
                ``after`` count the others, and long lists of ``state`` are sequences that read an item when it is
                asked for.
        """
        source = self._source(family)
        made = await self._run(source, source.state(thread_id, checkpoint_id, namespace, at, partly=window is not None))
        if made is None:
            return None
        # Of very long conversations it takes a while, for which others must not wait.
        return await asyncio.to_thread(_with_messages, made, window)

    async def differences(
        self, family: ThreadFamily, thread_id: str, before_id: str, after_id: str, *, namespace: str = ""
    ) -> Difference:
        """What changed between two checkpoints of a thread, whichever is the older.

        Raises:
            NotFound: One of them is not there.
            CorruptCheckpoint: One of them cannot be read.
        """
        views = []
        for checkpoint_id in (before_id, after_id):
            view = await self.state(family, thread_id, checkpoint_id, namespace=namespace)
            if view is None:
                raise NotFound(
                    f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}. Its history tells which it has."
                )
            if view.damage is not None:
                raise CorruptCheckpoint(view.damage)
            views.append(view)
        return await COMPARING.run(difference, *views)  # of very long conversations it takes seconds

    async def states(
        self, family: ThreadFamily, thread_id: str, limit: int = 100, *, at: datetime | None = None
    ) -> list[Turn]:
        """What the newest states of a thread say in numbers, oldest first.

        Read from the beginnings of the rows, so that many cost little; what is damaged says nothing.

        Args:
            family: Which threads.
            thread_id: The thread.
            limit: At most this many, and at most 1,000.
            at: Only what was saved by then, a time with a time zone.
        """
        source = self._source(family)
        return await asyncio.to_thread(await self._run(source, source.turns(thread_id, limit, at)))

    async def search(self, query: str, *, family: ThreadFamily = "agents", limit: int = 20) -> list[Hit]:
        """Where words were said, best first.

        MySQL ignores words under three letters and its stop words.

        Raises:
            InvalidInput: The tables have no full-text index.
        """
        source = self._source(family)
        return await asyncio.to_thread(await self._run(source, source.search(query, limit)))

    async def by_metadata(
        self, key: str, value: Any, *, family: ThreadFamily = "agents", limit: int = 50
    ) -> list[Tagged]:
        """Checkpoints whose metadata contains a value under a top-level key, newest first.

        Of a pair that more than 3,000 checkpoints have, and of graphs', whose metadata has no index, those that are
        found are among the 20 newest checkpoints of each of the 1,000 threads saved last.
        """
        source = self._source(family)
        return await self._run(source, source.by_metadata(key, value, limit))

    async def statistics(self, family: ThreadFamily) -> Statistics:
        """How much there is of a family, and how it grows.

        Exact up to some thousand threads; of more, all are counted, and the rest is estimated from a sample, as
        ``sampled`` tells. It takes one to two seconds for a million threads, and reads no payloads but the
        beginnings of a few hundred.
        """
        source = self._source(family)
        return await self._run(source, source.statistics())

    async def changed(self, watched: Sequence[tuple[ThreadFamily, str]]) -> dict[tuple[ThreadFamily, str], str]:
        """For each thread that is there, what is another text after every write to it. One round trip.

        Args:
            watched: Families and thread ids, of families whose tables are there.
        """
        wanted: dict[ThreadFamily, list[str]] = {}
        for family, thread_id in dict.fromkeys(watched):
            wanted.setdefault(family, []).append(check_thread_id(thread_id))
        if not wanted:
            return {}
        statements = [self._source(family).markers(ids) for family, ids in wanted.items()]
        results = await self.database.asynchronous.run(
            _asked(Batch(tuple(statements), atomic=False, feeds_no_save=True))
        )
        return {
            (family, str(thread_id)): marker.hex() if isinstance(marker, bytes) else str(marker)
            for family, found in zip(wanted, results, strict=True)
            for thread_id, marker in found.rows
        }

    async def namespaces(
        self, prefix: Sequence[str] = (), *, limit: int = 100, cursor: str | None = None
    ) -> Page[NamespaceRow]:
        """Namespaces of long-term memory with items in them, in their order.

        Args:
            prefix: The first labels; empty for all.
            limit: At most this many.
            cursor: Of the page before.
        """
        return await self._run(self._memories, self._memories.namespaces(prefix, limit=limit, cursor=cursor))

    async def items(self, namespace: Sequence[str], *, limit: int = 100, cursor: str | None = None) -> Page[ItemRow]:
        """Items of exactly one namespace of long-term memory, in the order of their keys."""
        return await self._run(self._memories, self._memories.items(namespace, limit=limit, cursor=cursor))

    async def item(self, namespace: Sequence[str], key: str) -> ItemView | None:
        """An item of long-term memory; None if it is not there. It is not refreshed by that."""
        return await self._run(self._memories, self._memories.item(namespace, key))

    async def search_memories(
        self, query: str, namespace_prefix: Sequence[str] = (), *, limit: int = 20, way: Way | None = None
    ) -> list[ItemHit]:
        """Items of a namespace and those below it that a search finds, best first.

        Args:
            query: What is looked for.
            namespace_prefix: The first labels; empty for all.
            limit: At most this many.
            way: ``word``, ``meaning`` or ``hybrid``; by default by meaning where ``embed`` was given.

        Raises:
            InvalidInput: By meaning without ``embed``; or by word where the tables have no full-text index.
        """

        async def answer(step: Texts | Operation[Any]) -> Any:
            if isinstance(step, Texts):
                assert self._embed is not None  # noqa: S101 - a search asks for it only where there is one
                return await embed_awaited(self._embed, step)
            return await self._run(self._memories, step)

        return await drive_awaited(self._memories.search(query, namespace_prefix, limit=limit, way=way), answer)

    async def sessions(self, *, limit: int = 100, cursor: str | None = None, pattern: str = "*") -> Page[SessionRow]:
        """Sessions of working memory on MySQL, in the order of their ids.

        Args:
            limit: At most this many.
            cursor: Of the page before.
            pattern: A glob of their ids.
        """
        return await self._run(self._sessions, self._sessions.sessions(limit=limit, cursor=cursor, pattern=pattern))

    async def session(self, session_id: str) -> SessionView | None:
        """All that a session holds; None if it is not there. It is not renewed by that, and its variables not used."""
        return await self._run(self._sessions, self._sessions.session(session_id))

    async def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones."""
        if self._owned:
            await self.database.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _schemas(self) -> dict[str, Schema]:
        """The tables of all families that can be looked at."""
        threads: dict[str, Schema] = {family: source.schema for family, source in self._threads.items()}
        return {**threads, "memories": self._memories.schema, "working": self._sessions.schema}

    def _source(self, family: ThreadFamily) -> ThreadSource:
        source = self._threads.get(family)
        if source is None:
            raise InvalidInput(
                f"There are no threads of {family!r:.50}; there are those of {', '.join(self._threads)}."
            )
        return source

    async def _run(self, source: HasTables, operation: Operation[T]) -> T:
        return await self.database.asynchronous.run(operation, source.schema, "validate")


class HasTables(Protocol):
    """What is looked at."""

    @property
    def schema(self) -> Schema:
        """Its tables."""


def _with_messages(made: Made[StateView], window: Window | None) -> StateView:
    """A state with its conversation, or with a part of it."""
    view = made()
    if window is None:
        return replace(view, messages=messages_of(view.state))
    messages, before, after = part_of_conversation(view.state, window)
    return replace(view, messages=messages, before=before, after=after)


def _asked(batch: Batch) -> Operation[Any]:
    """An operation that gives the results of a batch."""
    return (yield batch)
