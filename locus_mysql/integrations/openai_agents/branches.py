"""The branches of a session: which of its items each one has, and the turns that the items are. No I/O.

All items of a session are in one transcript. A branch is a list of ranges of their seqs, so branches share items, and
no item is copied. The ranges are the transcript's state; a transcript without a state has only the branch ``main``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from ...errors import CorruptCheckpoint
from ...families.transcripts.records import Item, SeqRange, Transcript

#: The branch that every session has.
MAIN = "main"

#: The format of the state.
FORMAT = 1

Ranges: TypeAlias = tuple[tuple[int, int], ...]


class Pointer(NamedTuple):
    """The branch that a session object continues.

    Args:
        branch_id: The branch.
        generation: That of the session when the branch was chosen; see `Branches`.
    """

    branch_id: str = MAIN
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch other than ``main``.

    Args:
        ranges: The seqs of its items. Without any, it is deleted, or has no items yet; its id stays reserved.
        created_at: When it was created.
    """

    ranges: Ranges
    created_at: str


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a session.

    Args:
        generation: The revision at which the first branch was created or the session was last cleared; 0 without
            branches. Session objects of another generation continue ``main``.
        main: The seqs of the items of ``main``, up to ``last``.
        last: All items with later seqs belong to ``main``, so adding items to it does not change this state.
        others: The other branches by their ids.
    """

    generation: int = 0
    main: Ranges = ()
    last: int = 0
    others: Mapping[str, Branch] = field(default_factory=dict)

    @classmethod
    def of(cls, transcript: Transcript | None) -> Branches:
        """Return the branches of a session.

        Raises:
            CorruptCheckpoint: The state is none of this version.
        """
        state = None if transcript is None else transcript.header.state
        if state is None:
            return cls()
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise CorruptCheckpoint("The branches of the session are of a newer version. Upgrade locus-mysql.")
        others = {name: Branch(_ranges(one["ranges"]), one["created_at"]) for name, one in state["branches"].items()}
        return cls(state["generation"], _ranges(state["main"]), state["last"], others)

    @property
    def state(self) -> dict[str, Any]:
        """The state to store."""
        return {
            "format": FORMAT,
            "generation": self.generation,
            "last": self.last,
            "main": [list(one) for one in self.main],
            "branches": {
                name: {"ranges": [list(some) for some in one.ranges], "created_at": one.created_at}
                for name, one in self.others.items()
            },
        }

    def resolve(self, pointer: Pointer) -> str:
        """Return the branch that a session object continues: ``main`` if the session was cleared since."""
        return pointer.branch_id if pointer.generation == self.generation else MAIN

    def within(self, branch_id: str) -> tuple[SeqRange, ...]:
        """Return the seqs of a branch's items; none if there is no such branch."""
        if branch_id == MAIN:
            return (*self.main, (self.last + 1, None))
        return self.others[branch_id].ranges if branch_id in self.others else ()

    def has(self, branch_id: str, seq: int) -> bool:
        """Return whether an item belongs to a branch."""
        return any(first <= seq and (last is None or seq <= last) for first, last in self.within(branch_id))

    def is_shared(self, seq: int) -> bool:
        """Return whether any branch has an item."""
        return any(self.has(branch_id, seq) for branch_id in (MAIN, *self.others))

    def closed(self, last_seq: int) -> Branches:
        """Return the same branches, with later items than this one belonging to none yet."""
        return replace(self, main=_added(self.main, self.last + 1, last_seq), last=max(self.last, last_seq))

    def with_branch(self, branch_id: str, source: str, before: int, transcript: Transcript) -> Branches:
        """Return the branches with a new one, which shares the items of another one before a seq.

        Args:
            branch_id: The new branch.
            source: The other one.
            before: The seq.
            transcript: The session.
        """
        closed = self.closed(transcript.last_seq)
        new = Branch(_cut(closed._ranges_of(source), before), transcript.updated_at.strftime("%Y-%m-%d %H:%M:%S"))
        generation = self.generation or transcript.revision
        return replace(closed, generation=generation, others={**self.others, branch_id: new})

    def with_items(self, branch_id: str, count: int, last_seq: int) -> Branches:
        """Return the branches after items were added to one that is not ``main``, behind the transcript's last seq."""
        closed = self.closed(last_seq)
        grown = replace(
            self.others[branch_id], ranges=_added(closed._ranges_of(branch_id), last_seq + 1, last_seq + count)
        )
        return replace(closed, last=last_seq + count, others={**self.others, branch_id: grown})

    def without_items(self, branch_id: str, since: int) -> Branches:
        """Return the branches after one lost its items from a seq on."""
        if branch_id == MAIN:
            return replace(self, main=_cut(self.main, since))
        cut = replace(self.others[branch_id], ranges=_cut(self.others[branch_id].ranges, since))
        return replace(self, others={**self.others, branch_id: cut})

    def cleared(self, transcript: Transcript) -> Branches:
        """Return the branches after all items were removed. Their ids stay reserved."""
        others = {name: replace(one, ranges=()) for name, one in self.others.items()}
        return Branches(transcript.revision, (), transcript.last_seq, others)

    def only_in(self, branch_id: str) -> list[int]:
        """Return the seqs that a branch shares with no other."""
        mine = {seq for first, last in self.others[branch_id].ranges for seq in range(first, last + 1)}
        for other in (MAIN, *self.others):
            if other != branch_id:
                mine -= {seq for first, last in self._ranges_of(other) for seq in range(first, last + 1)}
        return sorted(mine)

    def _ranges_of(self, branch_id: str) -> Ranges:
        return self.main if branch_id == MAIN else self.others[branch_id].ranges


def _ranges(stored: Iterable[Iterable[int]]) -> Ranges:
    return tuple((first, last) for first, last in stored)


def _added(ranges: Ranges, first: int, last: int) -> Ranges:
    """Return ranges with another one behind them."""
    if last < first:
        return ranges
    if ranges and ranges[-1][1] == first - 1:
        return (*ranges[:-1], (ranges[-1][0], last))
    return (*ranges, (first, last))


def _cut(ranges: Ranges, before: int) -> Ranges:
    """Return the part of ranges before a seq."""
    return tuple((first, min(last, before - 1)) for first, last in ranges if first < before)


#: Types of items that have no name of a tool: the tool is the type.
NAMELESS = {
    "computer_call", "file_search_call", "web_search_call", "code_interpreter_call", "shell_call", "apply_patch_call",
}  # fmt: skip

#: Types of items that count as a use of a tool.
CALLS = NAMELESS | {
    "tool_call", "function_call", "tool_search_call", "custom_tool_call", "mcp_call", "mcp_approval_request",
}  # fmt: skip

PREVIEW_CHARACTERS = 100


class ItemWithTurn(NamedTuple):
    """An item of a branch, with its turn: the number of messages of the user up to it."""

    turn: int
    item: Item

    @property
    def is_user(self) -> bool:
        """Whether it is a message of the user, with which a turn begins."""
        return is_user(self.item.content)


def with_turns(items: Sequence[Item]) -> Iterator[ItemWithTurn]:
    """Yield all items of a branch with their turns."""
    turn = 0
    for item in items:
        turn += is_user(item.content)
        yield ItemWithTurn(turn, item)


def is_user(content: Any) -> bool:
    """Return whether an item is a message of the user."""
    return isinstance(content, dict) and content.get("role") == "user"


def type_of(content: Any) -> str:
    """Return what an item is: ``user``, ``assistant``, its type, or ``other``."""
    if isinstance(content, dict):
        if content.get("role") in {"user", "assistant"}:
            return str(content["role"])
        if content.get("type"):
            return str(content["type"])
    return "other"


def tool_of(content: Any) -> str | None:
    """Return the tool of a call or of its output; None for other items."""
    if not isinstance(content, dict):
        return None
    kind, name = content.get("type"), content.get("name")
    if kind in {"mcp_call", "mcp_approval_request"} and "server_label" in content:
        return ".".join(str(part) for part in (content["server_label"], name) if part) or None
    if kind in {"tool_search_call", "tool_search_output"}:
        return "tool_search"
    if kind in NAMELESS:
        return str(kind)
    if name is None:
        return None
    namespace = content.get("namespace")
    # The SDK gives a tool outside of any namespace its own name as one.
    return f"{namespace}.{name}" if name and namespace and str(namespace) != str(name) else str(name)


def turns_in(items: Sequence[Item], search_term: str | None = None) -> list[dict[str, Any]]:
    """Return the messages of the user, as the SDK describes them.

    Args:
        items: All items of a branch.
        search_term: Only those that contain this text, whose ASCII letters match in either case.
    """
    wanted = None if search_term is None else re.compile(re.escape(search_term), re.IGNORECASE | re.ASCII)
    found = []
    for turn, item in (one for one in with_turns(items) if one.is_user):
        content = item.content.get("content", "")
        if wanted is not None and not any(wanted.search(text) for text in _texts(content)):
            continue
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        if wanted is None and len(text) > PREVIEW_CHARACTERS:
            text = f"{text[:PREVIEW_CHARACTERS]}..."
        found.append(
            {
                "turn": turn,
                "content": text,
                "full_content": content,
                "timestamp": item.created_at.strftime("%Y-%m-%d %H:%M:%S"),
                "can_branch": True,
            }
        )
    return found


def by_turns(items: Sequence[Item]) -> dict[int, list[dict[str, str | None]]]:
    """Return the type and tool of each item, by turn."""
    turns: dict[int, list[dict[str, str | None]]] = {}
    for turn, item in with_turns(items):
        turns.setdefault(turn, []).append({"type": type_of(item.content), "tool_name": tool_of(item.content)})
    return turns


def tools_in(items: Sequence[Item]) -> list[tuple[str, int, int]]:
    """Return each tool with the number of its calls in a turn, and the turn."""
    counts, outputs = Counter[tuple[int, str | None]](), Counter[tuple[int, str | None]]()
    searched = set[int]()
    for turn, item in with_turns(items):
        kind = type_of(item.content)
        if kind in CALLS:
            counts[turn, tool_of(item.content)] += 1
            searched |= {turn} if kind == "tool_search_call" else set()
        elif kind == "tool_search_output":
            outputs[turn, tool_of(item.content)] += 1
    for (turn, tool), number in outputs.items():
        if turn not in searched:  # an output counts where its call is missing
            counts[turn, tool] += number
    ordered = sorted(counts.items(), key=lambda one: (one[0][0], one[0][1] or ""))
    return [(tool or "", number, turn) for (turn, tool), number in ordered]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
