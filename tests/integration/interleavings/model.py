"""`Worlds`: checks that calls' results are consistent with some order in which each call took effect once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias


class Saved(NamedTuple):
    """A checkpoint: its id, or a placeholder until the id is known, and the number of its state."""

    name: Hashable
    state: int


#: Each thread's checkpoints, oldest first. A thread without any is left out.
Threads: TypeAlias = frozenset[tuple[str, tuple[Saved, ...]]]

#: The effect of a call on the threads: each possible outcome, with the call's return value for it.
Effect: TypeAlias = Callable[[Threads], Iterator[tuple[Threads, Any]]]


@dataclass(frozen=True)
class World:
    """One possible state of the server.

    Args:
        threads: The stored threads.
        returns: The running calls that took effect, with their expected return values.
    """

    threads: Threads = frozenset()
    returns: frozenset[tuple[int, Any]] = frozenset()


class Worlds:
    """Every possible state of the server, given the results of the calls that ended."""

    def __init__(self) -> None:
        self.possible = {World()}
        self._on_their_way: dict[int, Effect] = {}
        self._begun = 0

    def begin(self, effect: Effect) -> int:
        """Begin a call, which may take effect until it ends. Return its number."""
        self._begun += 1
        self._on_their_way[self._begun] = effect
        return self._begun

    def end(self, number: int, returned: Any) -> bool:
        """End a call. Return whether some order of the calls explains the value that it returned."""
        ended = set()
        for world in self._unfolded():
            returns = dict(world.returns)
            if returns.pop(number, _NOTHING) == returned:
                ended.add(replace(world, returns=frozenset(returns.items())))
        del self._on_their_way[number]
        if ended:
            self.possible = ended
        return bool(ended)

    def expected(self, number: int) -> list[Any]:
        """Return the possible results of a call in progress."""
        found = [dict(world.returns)[number] for world in self._unfolded() if number in dict(world.returns)]
        return sorted(set(found), key=repr)

    def threads(self) -> set[Threads]:
        """Return the possible contents of the store."""
        return {world.threads for world in self.possible}

    def _unfolded(self) -> set[World]:
        """Return the possible worlds, and those that follow when running calls take effect."""
        reached, news = set(self.possible), set(self.possible)
        while news:
            later = {
                World(threads, world.returns | {(number, returned)})
                for world in news
                for number, effect in self._on_their_way.items()
                if all(number != done for done, _ in world.returns)
                for threads, returned in effect(world.threads)
            }
            news = later - reached
            reached |= news
        return reached


_NOTHING = object()


def save(thread_id: str, saved: Saved, keep: int | None = None, expected: Hashable = None) -> Effect:
    """Adds the newest checkpoint, replaces one of the same id, and removes those beyond ``keep``.

    If the newest checkpoint is not the expected one, it returns "conflict" and changes nothing. ``expected="nothing"``
    means that the thread must have no checkpoint.
    """

    def effect(threads: Threads) -> Iterator[tuple[Threads, Any]]:
        before = dict(threads).get(thread_id, ())
        if expected is not None and expected != (before[-1].name if before else "nothing"):
            yield threads, "conflict"
            return
        others = [one for one in before if one.name != saved.name]
        kept = (*others, saved)
        yield _with(threads, thread_id, kept if keep is None else kept[-keep:]), True

    return effect


def load(thread_id: str, name: Hashable = None) -> Effect:
    """Returns the number of a checkpoint's state, by default the newest one's; None if it does not exist."""

    def effect(threads: Threads) -> Iterator[tuple[Threads, Any]]:
        there = [one.state for one in dict(threads).get(thread_id, ()) if name in (None, one.name)]
        yield threads, there[-1] if there else None

    return effect


def names(thread_id: str) -> Effect:
    """Returns the ids of a thread's checkpoints, newest first."""

    def effect(threads: Threads) -> Iterator[tuple[Threads, Any]]:
        yield threads, tuple(one.name for one in reversed(dict(threads).get(thread_id, ())))

    return effect


def delete(thread_id: str, name: Hashable = None) -> Effect:
    """Deletes a checkpoint or the whole thread; returns whether it existed."""

    def effect(threads: Threads) -> Iterator[tuple[Threads, Any]]:
        before = dict(threads).get(thread_id, ())
        after = () if name is None else tuple(one for one in before if one.name != name)
        yield _with(threads, thread_id, after), after != before

    return effect


def copy(source: str, destination: str) -> Effect:
    """Copies a thread; returns whether the source exists. If both exist, returns "exists" and changes nothing."""

    def effect(threads: Threads) -> Iterator[tuple[Threads, Any]]:
        there = dict(threads)
        if source not in there:
            yield threads, False
        elif destination in there:
            yield threads, "exists"
        else:
            yield _with(threads, destination, there[source]), True

    return effect


def may_remove(thread_id: str) -> Effect:
    """May remove the whole thread at any time. Models calls that process one thread after another."""

    def effect(threads: Threads) -> Iterator[tuple[Threads, Any]]:
        yield threads, None
        yield _with(threads, thread_id, ()), None

    return effect


def _with(threads: Threads, thread_id: str, checkpoints: tuple[Saved, ...]) -> Threads:
    others = {one: there for one, there in threads if one != thread_id}
    return frozenset({**others, **({thread_id: checkpoints} if checkpoints else {})}.items())
