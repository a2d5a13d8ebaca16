"""The targets as data: the comparison, the wanted figure, and where the results have the measured figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from . import (
    copying,
    graphs,
    inspection,
    memories,
    server,
    stalls,
    working,
)
from .contestants import BUILT_IN, OURS, OURS_BLOCKING, POSTGRESQL, REDIS
from .floor import floor_of
from .markdown import markdown_table
from .processes import COLD, IN_TURN

#: The results of all measurements by name.
Results = dict[str, Any]

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "≥": lambda measured, wanted: measured >= wanted,
    "≤": lambda measured, wanted: measured <= wanted,
    "<": lambda measured, wanted: measured < wanted,
}


@dataclass(frozen=True)
class Target:
    """One wanted figure.

    Args:
        name: The measured quantity, and the reference.
        case: The size or case.
        comparison: The required relation of the measured figure to the wanted one.
        wanted: The wanted figure.
        measured: Reads the figure; raises LookupError if it was not measured.
        about: The measurement, if it has its own page.
    """

    name: str
    case: str
    comparison: Literal["≥", "≤", "<"]
    wanted: float
    measured: Callable[[Results], float]
    about: str = ""

    def verdict(self, results: Results) -> tuple[float | None, bool | None]:
        """Return the measured figure and whether it meets the target; None if it was not measured."""
        try:
            figure = self.measured(results)
        except LookupError:
            return None, None
        return figure, COMPARISONS[self.comparison](figure, self.wanted)


def times_faster(what: str, size: int, other: str, ours: str = OURS) -> Callable[[Results], float]:
    """Return the factor by which this project is faster than another contestant."""
    return lambda results: 1 / of(what, size, other, ours)(results)


def of(what: str, size: int, other: str, ours: str = OURS) -> Callable[[Results], float]:
    """Return this project's time as a multiple of another contestant's."""

    def ratio(results: Results) -> float:
        measured = results["latency"]["workloads"][str(size)]["contestants"]
        return measured[ours][f"{what}_ms"] / measured[other][f"{what}_ms"]

    return ratio


def after_1000_turns(kind: str, figure: Callable[[dict[str, int]], float]) -> Callable[[Results], float]:
    """Return a figure of a conversation after its thousandth turn."""

    def read(results: Results) -> float:
        growth = results["growth"][kind]
        if 1000 not in growth["turns"]:
            raise LookupError("the conversation was shorter")
        index = growth["turns"].index(1000)
        return figure({name: values[index] for name, values in growth.items() if index < len(values)})

    return read


def flatness(operation: str) -> Callable[[Results], float]:
    """Return the time of the slowest variant at a million checkpoints, as a multiple of that at a thousand."""

    def read(results: Results) -> float:
        ratios = [
            times["1000000"] / times["1000"]
            for name, times in results["scale"]["operations"].items()
            if name.startswith(operation)
        ]
        if not ratios:
            raise LookupError(operation)
        return max(ratios)

    return read


def at_32(figure: Callable[[dict[str, Any]], float]) -> Callable[[Results], float]:
    """Return a figure of 32 concurrent conversations."""
    return lambda results: figure(results["throughput"]["concurrency"]["32"])


def over_all(figure: str) -> Callable[[Results], float]:
    """Return the sum of a figure of this project's drivers over all numbers of concurrent conversations."""
    return lambda results: sum(
        one[figure]
        for measured in results["throughput"]["concurrency"].values()
        for name, one in measured.items()
        if name.startswith("locus-mysql")
    )


def bytes_per_known_thread(results: Results) -> float:
    """Return the maximum number of bytes per known thread, over all ways in which one becomes known."""
    return max(known["bytes_per_thread"] for known in results["memory"]["known"])


def of_graphs(what: str, size: int, other: str, ours: str = graphs.OURS) -> Callable[[Results], float]:
    """Return another saver's time as a multiple of this project's."""

    def ratio(results: Results) -> float:
        measured = results["graphs"]["sizes"][str(size)]
        return measured[other][f"{what}_ms"] / measured[ours][f"{what}_ms"]

    return ratio


def space_of_graphs(results: Results) -> float:
    """Return another saver's bytes for a conversation as a multiple of this project's."""
    if results["graphs"]["steps"] < 500:
        raise LookupError("the conversation was shorter")
    stored = results["graphs"]["stored"]
    return stored[graphs.PUBLISHED]["row_bytes"] / stored[graphs.OURS]["row_bytes"]


def warm_of_product(dims: int, size: int, unit: str) -> Callable[[Results], float]:
    """Return the time of a warm search as a multiple of two NumPy products and a round trip."""

    def ratio(results: Results) -> float:
        times = results["memories"]["sizes"][str(dims)][str(size)][unit]
        return times[memories.WARM] / (2 * times[memories.PRODUCT] + times[memories.TRIP])

    return ratio


def cold_of_fetching(results: Results) -> float:
    """Return the time of a cold search as a fraction of that of fetching all vectors, at 100,000 items."""
    times = results["memories"]["sizes"]["384"]["100000"]["ms"]
    return times[memories.COLD] / times[memories.FETCHED]


def recall(among: str) -> Callable[[Results], float]:
    """Return the fraction of the nearest items that cold searches found."""

    def share(results: Results) -> float:
        found = [value for name, value in results["memories"]["recall"].items() if name.startswith(among)]
        if not found:
            raise LookupError(among)
        return min(found)

    return share


SIZES = (10, 100, 1000, 5000)
FLOOR = floor_of(OURS)
STORAGE = {"plain turns": "1,000 turns", "three iteration saves per turn": "1,000 turns of three deleted saves"}


def _by_size(
    name: str,
    comparisons: tuple[Literal["≥", "≤", "<"], ...],
    wanted: tuple[float, ...],
    measured: Callable[[int], Callable[[Results], float]],
) -> Iterator[Target]:
    for size, comparison, figure in zip(SIZES, comparisons, wanted, strict=True):
        yield Target(name, f"n={size}", comparison, figure, measured(size))


def _in_other_processes(library: str, kind: str) -> Iterator[Target]:
    """Return the targets of a process that did not write the loaded state, against the built-in backend in one."""
    ours, built_in = f"{library}, {kind}", f"{BUILT_IN}, {kind}"
    for size, load, turn in zip(SIZES, (1.5, 1.8, 2.0), (3.5, 5.0, 9.0), strict=False):
        case = f"{ours.removeprefix('locus-mysql, ')}, n={size}"
        for what, wanted in (("load", load), ("load and save", turn)):
            measured = times_faster("turn" if what != "load" else what, size, built_in, ours)
            yield Target(f"{what}, times faster than Locus' built-in", case, "≥", wanted, measured)
        yield Target("load, of the floor", case, "≤", 1.3, of("load", size, floor_of(ours), ours))


def _of_graphs() -> Iterator[Target]:
    """Return the targets of the savers for LangGraph."""
    for size, put, get in ((10, 2, 1.2), (100, 3, 1.5), (1000, 10, 2)):
        case = f"LangGraph, n={size}"
        other = "langgraph-checkpoint-mysql"
        yield Target(f"put, times faster than {other}", case, "≥", put, of_graphs("put", size, graphs.PUBLISHED))
        for ours in (graphs.OURS, graphs.OURS_COLD):
            which = case + ours.removeprefix(graphs.OURS)
            measured = of_graphs("get_tuple", size, graphs.PUBLISHED, ours)
            yield Target(f"get_tuple, times faster than {other}", which, "≥", get, measured)
    for size in (100, 1000):
        for what in graphs.OPERATIONS:
            measured = of_graphs(what, size, graphs.POSTGRESQL)
            yield Target(f"{what}, times faster than AsyncPostgresSaver", f"LangGraph, n={size}", "≥", 1, measured)
    yield Target("space, times less than langgraph-checkpoint-mysql", "LangGraph, 500 steps", "≥", 20, space_of_graphs)


def _of_memories() -> Iterator[Target]:
    """Return the targets of searches by meaning."""
    for dims, sizes in memories.SIZES.items():
        for size in sizes:
            case = f"{size:,} items of {dims:,} dimensions"
            for unit, what in (("ms", ""), ("processor_ms", ", processor time")):
                name = f"warm search, of two bare products and a round trip{what}"
                yield Target(name, case, "≤", 1, warm_of_product(dims, size, unit), memories.PAGE)
    name = "cold search, of fetching all vectors"
    yield Target(name, "100,000 items of 384 dimensions", "≤", 0.1, cold_of_fetching, memories.PAGE)
    for among in ("clustered", "real sentences"):
        yield Target("recall@10 of a cold search", among, "≥", 0.99, recall(among), memories.PAGE)


def _of_copying() -> Iterator[Target]:
    """Return the targets of copying: faster than a plain loop, and a cheap second copy."""

    def times_the_loop(source: str) -> Callable[[Results], float]:
        return lambda results: _speed(results, source, copying.COPY) / _speed(results, source, copying.ONE_BY_ONE)

    def again(source: str) -> Callable[[Results], float]:
        return lambda results: _speed(results, source, copying.AGAIN) / _speed(results, source, copying.READ)

    for source in (copying.FILES, copying.REDIS):
        yield Target(
            "threads copied per second, times one by one", source, "≥", 3, times_the_loop(source), copying.PAGE
        )
        yield Target("copied again, times reading alone", source, "≥", 1, again(source), copying.PAGE)


def _speed(results: Results, source: str, way: str) -> float:
    return float(results["copying"]["sources"][source][way]["threads_per_s"])


def _of_working() -> Iterator[Target]:
    """Return the targets of working memory."""
    ours = [
        *(f"MySQL, {driver}" for driver in working.AWAITED),
        *(f"MySQL, {driver}, blocking" for driver in working.BLOCKING),
        working.REDIS,
    ]
    for name in ours:
        for what, wanted in ((working.GET, 1.5), (working.SET, 2)):
            yield Target(f"{what}, of the bare one", name, "≤", wanted, of_bare(what, name), working.PAGE)
            yield Target(f"{what}, p95 in ms, alone", name, "≤", 5, slowest_alone(what, name), working.PAGE)
            case = f"{name}, {working.SESSIONS} sessions"
            yield Target(f"{what}, p95 in ms, at once", case, "≤", 5, p95_at_once(what, name), working.PAGE)
    case = "10 of 1,000 variables changed"
    yield Target("a session, times what a checkpoint writes", case, "≥", 20, checkpoint_share, working.PAGE)


def _of_server() -> Iterator[Target]:
    """Return the targets of the HTTP service."""
    for what in (server.SAVE, server.LOAD):
        yield Target(f"{what}, ms that the service adds", "one client, p50", "≤", 1.5, added(what), server.PAGE)
        for name in (server.SERVICE, server.WORKERS):
            case = f"{name}, {server.CLIENTS} clients"
            yield Target(f"{what}s a second, of direct ones", case, "≥", 0.6, share_of_direct(what, name), server.PAGE)
    for count, at_once in ((1, "one_ms"), (stalls.AT_ONCE, "many_ms")):
        name = "longest wait of another tenant, ms"
        yield Target(name, f"{count} of the largest", "≤", stalls.BOUND_MS, longest_wait(at_once), stalls.PAGE)


def longest_wait(at_once: str) -> Callable[[Results], float]:
    """Return the longest wait of another tenant during any operation."""
    return lambda results: stalls.longest(results["stalls"], at_once)


def added(what: str) -> Callable[[Results], float]:
    """Return the maximum number of milliseconds that the service adds to the median of a call."""
    return lambda results: server.added(results["server"], what)


def share_of_direct(what: str, name: str) -> Callable[[Results], float]:
    """Return the minimum of the service's throughput as a share of the direct one."""
    return lambda results: server.throughput(results["server"], what, name)


def _of_inspection() -> Iterator[Target]:
    """Return the targets of the inspector with a million threads."""
    for name in inspection.PAGES:
        yield Target("p50 in ms, 1,000,000 threads", name, "≤", 100, page_of_a_million(name), inspection.PAGE)


def page_of_a_million(name: str) -> Callable[[Results], float]:
    """Return the median time of a page with a million threads."""
    return lambda results: results["inspection"]["operations"][name]["1000000"]["p50"]


def of_bare(what: str, name: str) -> Callable[[Results], float]:
    """Return the maximum over all sizes of working memory's median as a multiple of the bare call's."""

    def read(results: Results) -> float:
        sizes = results["working"]["sizes"].values()
        return max(one[name][what]["p50"] / one[working.bare_of(name)][what]["p50"] for one in sizes)

    return read


def slowest_alone(what: str, name: str) -> Callable[[Results], float]:
    """Return the highest 95th percentile of all sizes, in milliseconds."""
    return lambda results: max(one[name][what]["p95"] for one in results["working"]["sizes"].values())


def p95_at_once(what: str, name: str) -> Callable[[Results], float]:
    """Return the 95th percentile with many concurrent sessions, in milliseconds."""
    return lambda results: results["working"]["at_once"][name][what]["p95"]


def checkpoint_share(results: Results) -> float:
    """Return a session's bytes as a multiple of those that a checkpoint writes."""
    written = results["working"]["checkpoint_bytes"]
    return written["session"] / written["checkpoint"]


TARGETS: tuple[Target, ...] = (
    *_by_size(
        "save, times faster than Locus' built-in",
        ("≥",) * 4,
        (5, 8, 25, 40),
        lambda size: times_faster("save", size, BUILT_IN),
    ),
    *_by_size("save, of the floor", ("≤",) * 4, (2.0,) * 4, lambda size: of("save", size, FLOOR)),
    *_by_size(
        "load, times faster than Locus' built-in",
        ("≥",) * 4,
        (1.3, 1.3, 2, 2),
        lambda size: times_faster("load", size, BUILT_IN),
    ),
    *_by_size("load, of the floor", ("≤",) * 4, (1.5, 1.5, 1.3, 1.3), lambda size: of("load", size, FLOOR)),
    *(
        target
        for library in (OURS, OURS_BLOCKING)
        for kind in (IN_TURN, COLD)
        for target in _in_other_processes(library, kind)
    ),
    *_by_size(
        "save, of PgCheckpointer's",
        ("≤", "<", "<", "<"),
        (1.1, 0.7, 0.2, 0.1),
        lambda size: of("save", size, POSTGRESQL),
    ),
    *_by_size(
        "save, of Redis' (fsync)", ("≤", "<", "<", "<"), (1.1, 1, 0.5, 0.2), lambda size: of("save", size, REDIS)
    ),
    *(
        target
        for kind, case in STORAGE.items()
        for target in (
            Target(
                "whole states, times what is stored",
                case,
                "≥",
                80,
                after_1000_turns(kind, lambda at: at["whole_states_bytes"] / at["stored_bytes"]),
            ),
            Target(
                "stored, times the final state",
                case,
                "≤",
                6,
                after_1000_turns(kind, lambda at: at["stored_bytes"] / at["final_state_bytes"]),
            ),
        )
    ),
    *(
        Target(f"{operation}, times its time at 1,000", "1,000,000 checkpoints", "≤", 2, flatness(operation))
        for operation in ("query_by_metadata", "list_threads", "exists")
    ),
    Target(
        "throughput, times the built-in's",
        "32 conversations",
        "≥",
        3,
        at_32(lambda measured: measured[OURS]["saves_per_s"] / measured[BUILT_IN]["saves_per_s"]),
    ),
    Target(
        "throughput, times Redis'",
        "32 conversations",
        "≥",
        1.3,
        at_32(lambda measured: measured[OURS]["saves_per_s"] / measured[REDIS]["saves_per_s"]),
    ),
    Target(
        "99th percentile, times PgCheckpointer's",
        "32 conversations",
        "≤",
        1,
        at_32(lambda measured: measured[OURS]["p99_ms"] / measured[POSTGRESQL]["p99_ms"]),
    ),
    Target("failed saves", "1 to 128 conversations", "≤", 0, over_all("failed")),
    Target("retried saves, but for lock waits", "1 to 128 conversations", "≤", 0, over_all("retries")),
    *_of_graphs(),
    *_of_memories(),
    *_of_working(),
    *_of_inspection(),
    *_of_server(),
    *_of_copying(),
    Target("bytes per known thread", "10,000 threads", "≤", 2048, bytes_per_known_thread),
)


def exist_for(measurement: str) -> bool:
    """Return whether a measurement has targets."""
    return any(target.about == measurement for target in TARGETS)


def table(results: Results, about: str | None = None) -> str:
    """Return a table of all targets, or those of a measurement with a page, with the measured figures."""
    rows = []
    for target in TARGETS:
        if about is not None and target.about != about:
            continue
        figure, met = target.verdict(results)
        rows.append(
            [
                target.name,
                target.case,
                f"{target.comparison} {target.wanted:g}",
                "not measured" if figure is None else f"{figure:,.2f}".removesuffix(".00"),
                {True: "met", False: "MISSED", None: ""}[met],
            ]
        )
    return markdown_table(["target", "case", "wanted", "measured", ""], rows)
