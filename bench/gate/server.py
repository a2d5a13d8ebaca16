"""The HTTP service: the cost of a save and a load through it, compared with direct calls.

Processor time is that of the service's process, or of this process for direct calls, so it does not depend on the
load of the machine. Time is the caller's wait: the lower quartile of calls in turn. Both use the default library.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

from ..database import fresh_database
from ..server import (
    LOAD,
    SAVE,
    Contestant,
    Conversation,
    Direct,
    Service,
    running_service,
    states_from,
)

DRIVER = "mysql-connector"
MESSAGES = 10
ROUNDS, WARM_UP_ROUNDS = 150, 20


def figures(dsn: str) -> dict[str, float]:
    """Return the ratios of time and of processor time."""
    return asyncio.run(_figures(dsn))


async def _figures(dsn: str) -> dict[str, float]:
    states = await states_from(MESSAGES)
    with fresh_database(dsn) as own, running_service(own, DRIVER) as service:
        direct, through = Direct(own, DRIVER), Service(service.port, service.token)
        await through.connect(1)
        conversations: dict[str, Conversation] = {"direct": Conversation(direct, states)}
        conversations["service"] = Conversation(through, states)
        taken: dict[tuple[str, str], list[float]] = {}
        used: dict[tuple[str, str], float] = {}
        for number in range(-WARM_UP_ROUNDS, ROUNDS):
            for name in ("direct", "service") if number % 2 else ("service", "direct"):
                for what in (SAVE, LOAD):
                    conversation = conversations[name]
                    before = _processor_s(service.pid if name == "service" else None)
                    waited = await (conversation.save() if what == SAVE else conversation.load())
                    after = _processor_s(service.pid if name == "service" else None)
                    if number >= 0:
                        taken.setdefault((name, what), []).append(waited)
                        used[name, what] = used.get((name, what), 0.0) + after - before
        contestants: tuple[Contestant, ...] = (direct, through)
        for one in contestants:
            await one.close()
    found = {}
    for what in (SAVE, LOAD):
        quick = {name: statistics.quantiles(taken[name, what], n=4)[0] for name in conversations}
        found[f"time of a {what}, of the direct one"] = quick["service"] / quick["direct"]
        found[f"processor time of a {what}, of the direct one"] = used["service", what] / used["direct", what]
    return found


def _processor_s(pid: int | None) -> float:
    """Return the processor time of a process on this machine, by default of this process, in seconds."""
    if pid is None:
        return time.process_time()
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
