"""The session with branches, turns and usage, `OpenAIBranchingSession`, and its operations, which do no I/O."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Generator, Mapping
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

from agents import TResponseInputItem
from agents.result import RunResultBase

from ...config import MySQLConfig
from ...engine.logs import HOUSEKEEPING, loggable
from ...engine.operation import Operation, gather
from ...engine.retry import Backoff
from ...errors import LocusMySQLError
from ...families.transcripts.branches import MAIN, Branches, Pointer
from ...families.transcripts.records import Header, Item, NewItem, TranscriptKey, Write
from ...runtime.stores import awaited_method
from .session import CHANGED, KIND, BranchRead, OpenAIOperations, OpenAISession
from .turns import by_turns, is_user, tools_in, turns_in, with_turns

#: The part of a session's transcript that stores its usage, and is no conversation.
USAGE = "usage-state"

#: A search for the newest turn begins with this many of the last items, and reads four times as many each time.
RECENT_ITEMS = 64

_NUMBERS = ("requests", "input_tokens", "output_tokens", "total_tokens")
_DETAILS = ("input_tokens_details", "output_tokens_details")

T = TypeVar("T")


class OpenAIBranchOperations(OpenAIOperations):
    """Stores the items, branches and usage of one session.

    A call that reads turns reads all items of the branch, and one that lists branches all items of the session.

    Args:
        config: The options.
        session_id: The session.
    """

    def __init__(self, config: MySQLConfig, session_id: str) -> None:
        super().__init__(config, session_id)
        self._usage_key = TranscriptKey(KIND, "", session_id, USAGE)

    def clear_session(self) -> Operation[None]:
        """Remove all items, branches and usage of the session, and continue with ``main``. Two round trips.

        The ids of its branches stay reserved, so that session objects of other processes cannot write into a later
        branch of the same id; they continue with ``main``, too.
        """
        backoff = Backoff(CHANGED)
        while True:
            transcript = yield from self._transcripts.get(self._key)
            if transcript is None or transcript.header.state is None:
                return (yield from super().clear_session())
            header = Header(Branches.of(transcript).cleared(transcript).state)
            write = Write(self._key, header=header, empty=True)
            if (yield from self.written(transcript, write, Write(self._usage_key, delete=True))):
                self.pointer = Pointer()
                return None
            yield backoff.pause()

    def create_branch_from_turn(self, turn_number: int, branch_name: str | None = None) -> Operation[str]:
        """Create a branch with all items of the current one before a turn, and continue with it. Two round trips.

        The branch shares these items; none is copied.

        Args:
            turn_number: The turn: 1 is that of the first message of the user.
            branch_name: The id of the branch; None: a generated one.

        Returns:
            The id of the branch.

        Raises:
            ValueError: The branch has no such turn, or the name is blank or was used in this session before.
        """
        if branch_name is not None and not branch_name.strip():
            raise ValueError("Branch name cannot be empty")
        pointer, backoff = self.pointer, Backoff(CHANGED)
        while True:
            read = yield from self.read(None, pointer=pointer)
            before = None if read is None else _start_of(read.items, turn_number)
            if read is None or before is None:
                source = pointer.branch_id if read is None else read.branch_id
                raise ValueError(f"Turn {turn_number} does not contain a user message in branch '{source}'")
            used = {MAIN, *read.branches.others}
            if branch_name in used:
                raise ValueError(f"Branch ID '{branch_name}' has already been used. Choose a new branch ID.")
            branch_id = branch_name or _unused(f"branch_from_turn_{turn_number}_{int(time.time())}", used)
            branches = read.branches.with_branch(branch_id, read.branch_id, before, read.transcript)
            write = Write(self._key, header=Header(branches.state))
            if read.is_current and (yield from self.written(read.transcript, write)):
                self.pointer = Pointer(branch_id, branches.generation)
                return branch_id
            yield backoff.pause()

    def create_branch_from_content(self, search_term: str, branch_name: str | None = None) -> Operation[str]:
        """Create a branch from the first turn whose message contains a text; see `create_branch_from_turn`.

        Args:
            search_term: The text; see `find_turns_by_content`.
            branch_name: The id of the branch; None: a generated one.

        Raises:
            ValueError: No turn contains the text, or the name cannot be used.
        """
        turns = yield from self.find_turns_by_content(search_term)
        if not turns:
            raise ValueError(f"No user turns found containing '{search_term}'")
        return (yield from self.create_branch_from_turn(turns[0]["turn"], branch_name))

    def switch_to_branch(self, branch_id: str) -> Operation[None]:
        """Continue with another branch. Other session objects continue with theirs. One round trip, or two.

        Args:
            branch_id: The branch.

        Raises:
            ValueError: The session has no such branch, or it has no items.
        """
        read = yield from self.read(branch_id, last=1)
        if read is None or not read.items:
            raise ValueError(f"Branch '{branch_id}' does not exist")
        self.pointer = Pointer(branch_id, 0 if branch_id == MAIN else read.branches.generation)

    def delete_branch(self, branch_id: str, force: bool = False) -> Operation[None]:
        """Delete a branch, with the items that no other branch has. Its id stays reserved. Two round trips.

        Args:
            branch_id: The branch.
            force: Whether the current branch may be deleted; then the object continues with ``main``.

        Raises:
            ValueError: It is ``main``, the current branch, or none of the session's.
        """
        if not branch_id or not branch_id.strip():
            raise ValueError("Branch ID cannot be empty")
        if branch_id == MAIN:
            raise ValueError("Cannot delete the 'main' branch")
        if branch_id == self.pointer.branch_id and not force:
            raise ValueError(f"Cannot delete current branch '{branch_id}'. Use force=True or switch branches first")
        backoff = Backoff(CHANGED)
        while True:
            read = yield from self.read(branch_id, last=1)
            if read is None or not read.items:
                raise ValueError(f"Branch '{branch_id}' does not exist")
            header = Header(read.branches.without_items(branch_id, 0).state)
            gone = read.branches.only_in(branch_id)
            if (yield from self.written(read.transcript, Write(self._key, header=header, remove=gone))):
                if self.pointer.branch_id == branch_id:
                    self.pointer = Pointer()
                return
            yield backoff.pause()

    def list_branches(self) -> Operation[list[dict[str, Any]]]:
        """Return the branches that have items, oldest first. One round trip.

        Returns:
            For each, ``branch_id``, ``message_count``, ``user_turns``, ``is_current`` and ``created_at``, in UTC.
        """
        window = yield from self._transcripts.window(self._key)
        if window is None:
            return []
        self._known = window.transcript
        branches, listed = Branches.of(window.transcript), list[dict[str, Any]]()
        current = self.resolve(branches, self.pointer)
        for branch_id in (MAIN, *branches.others):
            items = [item for item in window.items if branches.has(branch_id, item.seq)]
            if items:
                first = items[0].created_at.strftime("%Y-%m-%d %H:%M:%S")
                listed.append(
                    {
                        "branch_id": branch_id,
                        "message_count": len(items),
                        "user_turns": sum(is_user(item.content) for item in items),
                        "is_current": branch_id == current,
                        "created_at": first if branch_id == MAIN else branches.others[branch_id].created_at,
                    }
                )
        return sorted(listed, key=lambda one: str(one["created_at"]))

    def get_conversation_turns(self, branch_id: str | None = None) -> Operation[list[dict[str, Any]]]:
        """Return the messages of the user in a branch, oldest first. One round trip, or two.

        Args:
            branch_id: The branch; None: the current one.

        Returns:
            For each, ``turn``, ``content`` (a text of at most 100 characters and ``...``), ``full_content``,
            ``timestamp`` in UTC, and ``can_branch``.
        """
        return turns_in((yield from self._items(branch_id)))

    def find_turns_by_content(self, search_term: str, branch_id: str | None = None) -> Operation[list[dict[str, Any]]]:
        """Return the messages of the user in a branch that contain a text; see `get_conversation_turns`.

        Args:
            search_term: The text. ASCII letters match in upper and lower case.
            branch_id: The branch; None: the current one.

        Returns:
            As `get_conversation_turns`, with the whole text as ``content``.
        """
        return turns_in((yield from self._items(branch_id)), search_term)

    def get_conversation_by_turns(
        self, branch_id: str | None = None
    ) -> Operation[dict[int, list[dict[str, str | None]]]]:
        """Return the ``type`` and ``tool_name`` of each item of a branch, by turn. One round trip, or two.

        Args:
            branch_id: The branch; None: the current one.
        """
        return by_turns((yield from self._items(branch_id)))

    def get_tool_usage(self, branch_id: str | None = None) -> Operation[list[tuple[str, int, int]]]:
        """Return each tool with the number of its calls in a turn of a branch, and the turn. One round trip, or two.

        Args:
            branch_id: The branch; None: the current one.
        """
        return tools_in((yield from self._items(branch_id)))

    def store_run_usage(self, result: RunResultBase) -> Operation[None]:
        """Store the usage of a run for the newest turn of the current branch, in place of any before.

        Two round trips; three where the turn has usage already. An error of storage is logged and not raised, as by the
        SDK's own session: the run itself has succeeded.

        Args:
            result: What ``Runner.run`` returned.
        """
        usage: Any = result.context_wrapper.usage
        if usage is None:
            return
        try:
            content: dict[str, Any] = {name: getattr(usage, name) or 0 for name in _NUMBERS}
            content |= {name: _details(getattr(usage, name, None)) for name in _DETAILS}
            yield from self._store_usage(content)
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("The usage of a run was not stored: %s.", loggable(error))

    def get_session_usage(self, branch_id: str | None = None) -> Operation[dict[str, int] | None]:
        """Return the sums of the usage of all turns; None if there is none. Two round trips.

        Args:
            branch_id: Only of this branch; None: of all.
        """
        transcript, stored = yield from gather(
            [self._transcripts.get(self._key), self._transcripts.read(self._usage_key)]
        )
        if transcript is None or stored is None:
            return None
        branches = Branches.of(transcript)
        found = [
            one
            for one in (item.content for item in stored.items)
            if (not branch_id or one["branch"] == branch_id) and branches.has(one["branch"], one["anchor"])
        ]
        existing = yield from self._transcripts.existing(self._key, sorted({one["anchor"] for one in found}))
        of_session = transcript.created_at.isoformat()
        found = [one for one in found if one["anchor"] in existing and one["session"] == of_session]
        if not found:
            return None
        return {**{name: sum(one[name] for one in found) for name in _NUMBERS}, "total_turns": len(found)}

    def get_turn_usage(
        self, user_turn_number: int | None = None, branch_id: str | None = None
    ) -> Operation[list[dict[str, Any]] | dict[str, Any]]:
        """Return the usage of a turn, or of all turns of a branch. One round trip, or two.

        Args:
            user_turn_number: The turn; None: all.
            branch_id: The branch; None: the current one.

        Returns:
            ``requests``, ``input_tokens``, ``output_tokens``, ``total_tokens``, ``input_tokens_details`` and
            ``output_tokens_details`` of the turn, empty without usage; or a list of them, with ``user_turn_number``.
        """
        read, stored = yield from gather([self.read(branch_id), self._transcripts.read(self._usage_key)])
        turns: dict[int, dict[str, Any]] = {}
        if read is not None and stored is not None:
            numbers = {item.seq: turn for turn, item in with_turns(read.items)}
            of_session = read.transcript.created_at.isoformat()
            for one in (item.content for item in stored.items):
                if (one["session"], one["branch"]) == (of_session, read.branch_id) and one["anchor"] in numbers:
                    turns[numbers[one["anchor"]]] = {name: one[name] for name in (*_NUMBERS, *_DETAILS)}
        if user_turn_number is not None:
            return turns.get(user_turn_number, {})
        return [{"user_turn_number": turn, **turns[turn]} for turn in sorted(turns)]

    def _items(self, branch_id: str | None) -> Operation[list[Item]]:
        read = yield from self.read(branch_id)
        return [] if read is None else list(read.items)

    def _store_usage(self, usage: Mapping[str, Any]) -> Operation[None]:
        """Store usage under the first item of the newest turn: if that is removed, the usage no longer counts."""
        pointer, last = self.pointer, RECENT_ITEMS
        while True:
            read = yield from self.read(None, last=last, pointer=pointer)
            if read is None or not read.items or read.branch_id != pointer.branch_id:
                return
            anchor = next((item.seq for item in reversed(read.items) if is_user(item.content)), None)
            if anchor is not None or len(read.items) < last:
                break
            last *= 4
        yield from self._put_usage(read, read.items[0].seq if anchor is None else anchor, usage)

    def _put_usage(self, read: BranchRead, anchor: int, usage: Mapping[str, Any]) -> Operation[None]:
        session = read.transcript.created_at.isoformat()  # after the session is deleted, seqs begin again
        content = {"session": session, "branch": read.branch_id, "anchor": anchor, **usage}
        item_id = hashlib.sha256(f"{session}/{anchor}/{read.branch_id}".encode()).hexdigest()
        stored = yield from self._transcripts.append(self._usage_key, [NewItem(content, item_id)])
        if not stored.added:
            yield from self._transcripts.replace(self._usage_key, item_id, content)


def _start_of(items: Any, turn_number: int) -> int | None:
    """Return the seq of the message with which a turn begins; None if there is no such turn."""
    return next((one.item.seq for one in with_turns(items) if one.is_user and one.turn == turn_number), None)


def _unused(name: str, used: set[str]) -> str:
    """Return a name, with a number behind it if it is used already."""
    numbered, number = name, 1
    while numbered in used:
        number += 1
        numbered = f"{name}_{number}"
    return numbered


def _details(details: Any) -> dict[str, Any] | None:
    """Return the details of a number of tokens that are known; None without any."""
    if not details or not hasattr(details, "__dict__"):
        return None
    return {name: value for name, value in vars(details).items() if value is not None}


class OpenAIBranchingSession(OpenAISession):
    """An `OpenAISession` with branches, turns and usage: what the SDK's `AdvancedSQLiteSession` adds, in MySQL.

    Each object continues a branch of its own choice, first ``main``, whose items an `OpenAISession` of the same id has,
    too. Calls of one object are carried out in the order in which they were made. All arguments are those of
    `OpenAISession`.

    Example:
        ```python
        async with Database("mysql://user:password@localhost/app") as database:
            session = OpenAIBranchingSession("customer-7", database)
            await session.add_items([{"role": "user", "content": "Paris?"}, {"role": "user", "content": "Rome?"}])
            await session.create_branch_from_turn(2, "other-city")
            await session.add_items([{"role": "user", "content": "Oslo?"}])
            assert [item["content"] for item in await session.get_items()] == ["Paris?", "Oslo?"]
            assert len(await session.get_items(branch_id="main")) == 2
        ```
    """

    _operations: OpenAIBranchOperations
    _make_operations: ClassVar[type[OpenAIOperations]] = OpenAIBranchOperations

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        #: By event loop, as a session may be used in several, one after another.
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def current_branch(self) -> str:
        """The branch that this object continues; ``main`` once another process has cleared the session."""
        return self._operations.pointer.branch_id

    async def get_items(self, limit: int | None = None, branch_id: str | None = None) -> list[TResponseInputItem]:
        """Return the items of a branch, oldest first. One round trip; two after its branches have changed.

        Args:
            limit: See `OpenAISession.get_items`.
            branch_id: The branch; None: the current one. None of the session's: no items.

        Raises:
            CorruptCheckpoint: A row is damaged.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await self._run(self._operations.get_items(limit, branch_id))

    clear_session = awaited_method(OpenAIBranchOperations.clear_session)
    create_branch_from_turn = awaited_method(OpenAIBranchOperations.create_branch_from_turn)
    create_branch_from_content = awaited_method(OpenAIBranchOperations.create_branch_from_content)
    switch_to_branch = awaited_method(OpenAIBranchOperations.switch_to_branch)
    delete_branch = awaited_method(OpenAIBranchOperations.delete_branch)
    list_branches = awaited_method(OpenAIBranchOperations.list_branches)
    get_conversation_turns = awaited_method(OpenAIBranchOperations.get_conversation_turns)
    find_turns_by_content = awaited_method(OpenAIBranchOperations.find_turns_by_content)
    get_conversation_by_turns = awaited_method(OpenAIBranchOperations.get_conversation_by_turns)
    get_tool_usage = awaited_method(OpenAIBranchOperations.get_tool_usage)
    store_run_usage = awaited_method(OpenAIBranchOperations.store_run_usage)
    get_session_usage = awaited_method(OpenAIBranchOperations.get_session_usage)
    get_turn_usage = awaited_method(OpenAIBranchOperations.get_turn_usage)

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        """Run an operation after those of earlier calls."""
        lock = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            return await super()._run(operation)
