"""The session of the OpenAI Agents SDK, `OpenAISession`, and its operations, which do no I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar, Unpack, cast

from agents import TResponseInputItem
from agents.memory import SessionSettings

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.loops import settled
from ...engine.operation import Operation
from ...engine.retry import Backoff
from ...errors import VersionConflict
from ...families.transcripts.branches import MAIN, Branches, Pointer
from ...families.transcripts.coding import encode_exactly, row_key
from ...families.transcripts.operations import FrameworkTranscripts
from ...families.transcripts.records import Header, Item, NewItem, SeqRange, Transcript, TranscriptKey, Write
from ...families.transcripts.writing import ITEMS_LIMIT
from ...records.turns import AsyncTurn
from ...runtime.arguments import tenant_of
from ...runtime.database import Where, share
from ...runtime.exact_json import as_json
from ...runtime.stores import AsyncStore, awaited_method

T = TypeVar("T")

#: The range of all items.
ALL: tuple[SeqRange, ...] = ((1, None),)

#: The kind of these transcripts. The session is their name; their collection is empty.
KIND = "openai-agents"

#: What `Backoff` reports.
CHANGED = "Other session objects changed the session while it was read"


class BranchRead(NamedTuple):
    """Items of a branch.

    Args:
        transcript: The session.
        items: The items.
        is_current: Whether they are those of the session's revision.
        branches: The session's branches.
        branch_id: The branch.
    """

    transcript: Transcript
    items: Sequence[Item]
    is_current: bool
    branches: Branches
    branch_id: str


class OpenAIOperations(FrameworkTranscripts):
    """Stores the items of one session. Without branches, all are of the branch ``main``.

    Args:
        config: The options.
        session_id: The session.

    Raises:
        InvalidInput: The id of the session cannot be stored.
    """

    def __init__(self, config: MySQLConfig, session_id: str) -> None:
        super().__init__(config)
        self._key = TranscriptKey(KIND, "", session_id)
        row_key(tenant_of(config), self._key)  # an id that cannot be stored is refused now
        # By tenant: see `pointer` and `_known`.
        self._pointers: dict[str, Pointer] = {}
        self._transcript_of: dict[str, Transcript | None] = {}

    @property
    def pointer(self) -> Pointer:
        """The branch that this object continues."""
        return self._pointers.get(tenant_of(self.config), Pointer())

    @pointer.setter
    def pointer(self, pointer: Pointer) -> None:
        self._pointers[tenant_of(self.config)] = pointer

    @property
    def _known(self) -> Transcript | None:
        """The session as this object saw it last: if its branches have not changed since, calls need not read them."""
        return self._transcript_of.get(tenant_of(self.config))

    @_known.setter
    def _known(self, known: Transcript | None) -> None:
        self._transcript_of[tenant_of(self.config)] = known

    def get_items(self, limit: int | None = None, branch_id: str | None = None) -> Operation[list[TResponseInputItem]]:
        """Return the items of a branch of the session, oldest first.

        One round trip; two for the first call of an object, if the session has branches, and after they have changed.
        """
        read = yield from self.read(branch_id, last=last_of(limit))
        return [] if read is None else [cast(TResponseInputItem, item.content) for item in read.items]

    def add_items(self, items: list[TResponseInputItem]) -> Operation[None]:
        """Add items to the end of the current branch. Up to 10,000 in one round trip, all or none.

        Args:
            items: The items. More than 10,000 are stored in several transactions.

        Raises:
            InvalidInput: An item is no JSON; nothing was written.
            StateTooLarge: The items need a larger packet than the server's ``max_allowed_packet``.
        """
        pointer, added = self.pointer, new_items(items)
        if len(added) > ITEMS_LIMIT:
            for item in added:  # before the first transaction
                encode_exactly(item.content, "The item")
        for start in range(0, len(added), ITEMS_LIMIT):
            some = added[start : start + ITEMS_LIMIT]
            if pointer.branch_id == MAIN or not (yield from self._add_to_branch(pointer, some)):
                yield from self._transcripts.append(self._key, some)

    def pop_item(self) -> Operation[TResponseInputItem | None]:
        """Remove the last item of the current branch and return it; None if it has none.

        Two round trips; more beside other writers. An item that another branch has, too, stays there. Of concurrent
        calls, each returns another item.

        Raises:
            CorruptCheckpoint: The row is damaged; it stays.
        """
        pointer, backoff = self.pointer, Backoff(CHANGED)
        while True:
            read = yield from self.read(None, last=1, pointer=pointer)
            if read is None or not read.items:
                return None
            (item,) = read.items
            before, branch_id = read.branches, read.branch_id
            branches = before.without_items(branch_id, item.seq)
            # Items of `main` that were added since the branches changed last are in no branch's ranges.
            changed = branch_id != MAIN or item.seq <= before.last
            removed = [] if changed and branches.is_shared(item.seq) else [item.seq]
            header = Header(branches.state) if changed else None
            write = Write(self._key, header=header, remove=removed)
            if read.is_current and (yield from self.written(read.transcript, write)):
                return cast(TResponseInputItem, item.content)
            yield backoff.pause()

    def clear_session(self) -> Operation[None]:
        """Delete the session with all its items, branches and usage. One round trip."""
        yield from self._transcripts.delete(self._key, parts=True)
        self._known, self.pointer = None, Pointer()

    def replace_suffix(
        self, pointer: Pointer, suffix: Sequence[Item], items: Sequence[TResponseInputItem]
    ) -> Operation[bool]:
        """Replace the last items of a branch by others, in one transaction; return False if they are not its last.

        Two round trips; more beside other writers. Items that another branch has, too, stay there.

        Args:
            pointer: Names the branch.
            suffix: The items to replace, as they were read.
            items: The new items, at most 10,000.

        Raises:
            InvalidInput: An item is no JSON; nothing was written.
        """
        added, backoff = new_items(items), Backoff(CHANGED)
        while suffix:
            read = yield from self.read(None, last=len(suffix), pointer=pointer)
            if read is None or read.items != suffix:
                return False
            if read.is_current and (yield from self._replaced(read, added)):
                return True
            yield backoff.pause()
        return False

    def replace_all(self, items: Sequence[TResponseInputItem]) -> Operation[None]:
        """Replace all items of the current branch by others, in one transaction; see `replace_suffix`."""
        pointer, added, backoff = self.pointer, new_items(items), Backoff(CHANGED)
        while True:
            read = yield from self.read(None, pointer=pointer)
            if read is None or not read.items:
                return (yield from self.add_items(list(items)))
            if read.is_current and (yield from self._replaced(read, added)):
                return None
            yield backoff.pause()

    def read(
        self, branch_id: str | None, *, last: int | None = None, pointer: Pointer | None = None
    ) -> Operation[BranchRead | None]:
        """Return items of a branch, with the session's branches; None if there is no session."""
        pointer = pointer or self.pointer
        known = Branches.of(self._known)
        within = known.within(known.resolve(pointer) if branch_id is None else branch_id)
        backoff = Backoff(CHANGED)
        while True:
            window = yield from self._transcripts.window(self._key, None if within == ALL else within, last=last)
            self._known = None if window is None else window.transcript
            branches = Branches.of(self._known)
            resolved = self.resolve(branches, pointer) if branch_id is None else branch_id
            if window is None:
                return None
            assumed, within = within, branches.within(resolved)
            if within == assumed:  # else the branches have changed, or this object did not have them
                return BranchRead(window.transcript, window.items, window.is_current, branches, resolved)
            backoff.check()

    def resolve(self, branches: Branches, pointer: Pointer) -> str:
        """Return the branch that a pointer names; once the session was cleared, this object continues ``main``."""
        branch_id = branches.resolve(pointer)
        if branch_id != pointer.branch_id and self.pointer == pointer:
            self.pointer = Pointer()
        return branch_id

    def written(self, transcript: Transcript, write: Write, *others: Write) -> Operation[bool]:
        """Carry out a write to the session, and others, if it has the revision that was read; return whether it had."""
        self._known = None
        expecting = replace(write, key=self._key, expected=transcript.revision)
        try:
            written, *_ = yield from self._transcripts.write([expecting, *others])
        except VersionConflict:
            return False
        self._known = replace(
            transcript,
            revision=written.revision,
            header=write.header or transcript.header,
            last_seq=transcript.last_seq + len(write.items),
        )
        return True

    def _replaced(self, read: BranchRead, items: Sequence[NewItem]) -> Operation[bool]:
        """Replace the items that were read, the last of a branch; return False if the session was written to since."""
        before, branch_id, last_seq = read.branches, read.branch_id, read.transcript.last_seq
        branches = before.without_items(branch_id, read.items[0].seq)
        removed = [
            item.seq
            for item in read.items
            # Items of `main` that were added since the branches changed last are in no branch's ranges.
            if (branch_id == MAIN and item.seq > before.last) or not branches.is_shared(item.seq)
        ]
        if branch_id != MAIN:
            branches = branches.with_items(branch_id, len(items), last_seq)
        header = Header(branches.state) if branches != before else None
        return (yield from self.written(read.transcript, Write(self._key, items, header, remove=removed)))

    def _add_to_branch(self, pointer: Pointer, items: Sequence[NewItem]) -> Operation[bool]:
        """Add items to a branch other than `main`; return False if the session was cleared, so that there is none."""
        backoff = Backoff(CHANGED)
        while True:
            known = self._known or (yield from self._transcripts.get(self._key))
            branches = Branches.of(known)
            branch_id = branches.resolve(pointer)
            if known is None or branch_id == MAIN:
                self.pointer = Pointer()
                return False
            header = Header(branches.with_items(branch_id, len(items), known.last_seq).state)
            if (yield from self.written(known, Write(self._key, items, header))):
                return True
            yield backoff.pause()


def last_of(limit: int | None) -> int | None:
    """Return the number of items for a limit of the SDK; None: all."""
    return None if limit is None or limit < 0 else limit


def new_items(items: Sequence[TResponseInputItem]) -> list[NewItem]:
    """Return items as the SDK's session in SQLite would return them again: tuples become lists, keys become text.

    Raises:
        InvalidInput: An item is no JSON.
    """
    return [NewItem(as_json(item, "An item")) for item in items]


class OpenAISession(AsyncStore[OpenAIOperations]):
    """Keeps a conversation of the OpenAI Agents SDK in MySQL: an `agents.memory.Session`.

    A write that is cancelled ends before the cancellation is raised, as with the SDK's own sessions.

    Args:
        session_id: The id of the session: 1 to 800 bytes of UTF-8 without NUL, compared by code point.
        where: A `Database` that is shared with other sessions and stores, a DSN, or a `MySQLConfig`; or give options as
            keywords. Without a `Database`, this session opens its own connections.
        session_settings: Its ``limit`` is the default limit of `get_items`.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to sessions.

    Example:
        ```python
        async with Database("mysql://user:password@localhost/app") as database:
            session = OpenAISession("customer-7", database, tenant="acme")
            await session.add_items([{"role": "user", "content": "Where is the office?"}])
            assert await session.get_items(limit=1) == [{"role": "user", "content": "Where is the office?"}]
        ```
    """

    session_id: str
    session_settings: SessionSettings | None
    _make_operations: ClassVar[type[OpenAIOperations]] = OpenAIOperations

    def __init__(
        self,
        session_id: str,
        where: Where = ENVIRONMENT,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        if isinstance(session_settings, dict):
            if unknown := session_settings.keys() - {field.name for field in fields(SessionSettings)}:
                raise TypeError(f"Unknown session settings: {', '.join(sorted(unknown))}.")
            session_settings = SessionSettings(**session_settings)
        database, config, owned = share(type(self), where, options)
        super().__init__(self._make_operations(config, session_id), database, owned=owned)
        self.session_id = session_id
        self.session_settings = SessionSettings() if session_settings is None else session_settings

    def turn(self, wait_s: float = 30.0, lease_s: float = 20.0, *, take_over: bool = False) -> AsyncTurn:
        """Allow one turn at a time on the session, across all processes: ``async with session.turn():``.

        Everything else is as with `CheckpointStore.turn`.
        """
        operations = self._operations
        key = operations.owner_key(operations._key)
        return AsyncTurn(self, key, self.session_id, wait_s, lease_s, take_over=take_over)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items of the session, oldest first. One round trip.

        Args:
            limit: The maximum number of items, counted from the last; the server reads no others. None: the limit of
                `session_settings`. A negative number: all, as in the SDK's session in SQLite.

        Raises:
            CorruptCheckpoint: A row is damaged.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await super()._run(self._operations.get_items(limit))

    add_items = awaited_method(OpenAIOperations.add_items)
    pop_item = awaited_method(OpenAIOperations.pop_item)
    clear_session = awaited_method(OpenAIOperations.clear_session)

    # The SDK's OpenAIResponsesCompactionSession looks for the next two methods, whose names and arguments are those of
    # its own sessions. Without them it skips sessions with a limit, and else clears the session before it adds items.

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[TResponseInputItem], bool] | None = None
    ) -> CompactionSnapshot | None:
        """Return the last items, with a function that replaces some of them in one transaction.

        Args:
            limit: The maximum number of items.
            prune_prefix: Ignored. Expired items of the SDK's `EncryptedSession` stay, and it skips them as before.
        """
        if not self._stores_items_itself:
            return None
        pointer = self._operations.pointer
        read = await self._run(self._operations.read(None, last=limit + 1, pointer=pointer))
        items = [] if read is None else read.items[-limit:]

        async def replace_suffix(start: int, output: list[TResponseInputItem]) -> bool:
            return await self._run(self._operations.replace_suffix(pointer, items[start:], output))

        complete = read is None or len(read.items) == len(items)
        return CompactionSnapshot([cast(TResponseInputItem, item.content) for item in items], complete, replace_suffix)

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Replace all items in one transaction; return False, without doing so, for an application's own subclass."""
        if self._stores_items_itself:
            await self._run(self._operations.replace_all(items))
        return self._stores_items_itself

    @property
    def _stores_items_itself(self) -> bool:
        """Whether this is no application's subclass, whose methods may transform items."""
        return type(self).__module__.startswith(__package__)

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        """Run a write."""
        return await settled(super()._run(operation))


@dataclass(frozen=True, slots=True)
class CompactionSnapshot:
    """The last items of a session. The SDK's class of this kind is private, and its older versions have none.

    Args:
        items: The items, oldest first.
        complete: Whether the session has no others.
        replace_suffix: Replaces the items from an index on, if these are still the session's last ones; returns whether
            they were.
    """

    items: list[TResponseInputItem]
    complete: bool
    replace_suffix: Callable[[int, list[TResponseInputItem]], Awaitable[bool]]
