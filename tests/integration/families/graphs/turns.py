"""Graphs whose state grows by one message a turn."""

from __future__ import annotations

from typing import Any

from ...conftest import AnyStore


def state_of(turns: int) -> dict[str, Any]:
    return {"turns": turns, "messages": [{"content": f"turn {turn} " * 50} for turn in range(turns)], "last": None}


async def put_turns(saver: AnyStore, turns: int, thread_id: str = "thread", ns: str = "default") -> None:
    for turn in range(1, turns + 1):
        await saver.put(
            thread_id=thread_id,
            checkpoint_id=f"c{turn}",
            checkpoint_data=state_of(turn),
            checkpoint_ns=ns,
            parent_checkpoint_id=f"c{turn - 1}" if turn > 1 else None,
            metadata={"turn": turn},
        )


async def put_turns_after(saver: AnyStore, last: int, until: int) -> None:
    for turn in range(last + 1, until + 1):
        await saver.put(
            thread_id="thread",
            checkpoint_id=f"c{turn}",
            checkpoint_data=state_of(turn),
            parent_checkpoint_id=f"c{turn - 1}",
        )


async def ids(saver: AnyStore, **which: Any) -> list[str]:
    return [found["checkpoint_id"] for found in await saver.list_checkpoints(**{"limit": 1000, **which})]
