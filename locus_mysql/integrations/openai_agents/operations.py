"""The contract of the SDK's `Session`, as generators that do no I/O: `SessionOperations`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from agents import TResponseInputItem

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...engine.retry import Backoff
from ...errors import InvalidInput, VersionConflict
from ...families.transcripts.coding import encode_exactly, row_key
from ...families.transcripts.operations import TranscriptOperations
from ...families.transcripts.records import Header, Item, NewItem, SeqRange, Transcript, TranscriptKey, Write
from ...families.transcripts.writing import ITEMS_LIMIT
from .branches import MAIN, Branches, Pointer

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


class SessionOperations:
    """Stores the items of one session. Without branches, all are of the branch ``main``.

    Args:
        config: The options.
        session_id: The session.

    Raises:
        InvalidInput: The id of the session cannot be stored.
    """

    def __init__(self, config: MySQLConfig, session_id: str) -> None:
        self.config = config
        self._transcripts = TranscriptOperations(config)
        self.schema = self._transcripts.schema
        self._key = TranscriptKey(KIND, "", session_id)
        row_key(config.tenant, self._key)  # an id that cannot be stored is refused now
        #: The branch that this object continues.
        self.pointer = Pointer()
        # The session as this object saw it last: where its branches have not changed since, calls need not read them.
        self._known: Transcript | None = None

    def get_items(self, limit: int | None = None, branch_id: str | None = None) -> Operation[list[TResponseInputItem]]:
        """Return the items of a branch of the session, oldest first.

        One round trip; two for the first call of an object, if the session has branches, and after they have changed.

        Args:
            limit: At most this many of the last items, of which the server reads no others. None, or a negative number
                as with the SDK's session in SQLite: all.
            branch_id: The branch; None: the current one. None of the session's: no items.

        Raises:
            CorruptCheckpoint: A row is damaged.
        """
        read = yield from self.read(branch_id, last=last_of(limit))
        return [] if read is None else [cast(TResponseInputItem, item.content) for item in read.items]

    def add_items(self, items: list[TResponseInputItem]) -> Operation[None]:
        """Add items to the end of the current branch, all or none. One round trip.

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
            self._known = None
            try:
                written = yield from self._transcripts.append(self._key, items, header=header, expected=known.revision)
            except VersionConflict:
                yield backoff.pause()
                continue
            last_seq = known.last_seq + len(items)
            self._known = replace(known, revision=written.revision, header=header, last_seq=last_seq)
            return True


def last_of(limit: int | None) -> int | None:
    """Return the number of items for a limit of the SDK; None: all."""
    return None if limit is None or limit < 0 else limit


def new_items(items: Sequence[TResponseInputItem]) -> list[NewItem]:
    """Return items as the SDK's session in SQLite would return them again: tuples become lists, keys become text.

    Raises:
        InvalidInput: An item is no JSON.
    """
    return [NewItem(_as_json(item)) for item in items]


def _as_json(item: object) -> Any:
    try:
        return json.loads(json.dumps(item))
    except (TypeError, ValueError, RecursionError) as error:
        kind = error if isinstance(error, TypeError) else "it contains itself or is nested too deep"
        raise InvalidInput(f"An item cannot be stored as JSON: {kind}. Nothing was written.") from None
