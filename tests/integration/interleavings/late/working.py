"""Commands of working memory whose packets arrive late, and what other processes do in the meantime."""

from __future__ import annotations

import os
from typing import Any

from locus_mysql.families.working import calls

from ..stage import Call
from .stores import TENANT, Case, Stores


def ask(side: Stores, *commands: calls.Command[Any], ttl_us: int | None = None) -> Call:
    address = calls.Address(TENANT, "session")
    call = calls.Call("call", address, commands, ttl_us=ttl_us, token=os.urandom(16))
    return side.begin(side.working.execute(call))


def variable(value: int = 1, key: str = "a") -> calls.Variable:
    return calls.Variable(key, str(value).encode())


def filled(side: Stores) -> None:
    ask(side, calls.Write((variable(), variable(2, "b")))).finish()
    ask(side, calls.WriteTask(b'"task"')).finish()
    ask(side, calls.Append(b'"note"')).finish()
    ask(side, calls.CreateCheckpoint("kept")).finish()


def session_goes_on(side: Stores) -> None:
    ask(side, calls.Write((variable(7),))).finish()
    ask(side, calls.Append(b'"later"')).finish()


def session_made_anew(side: Stores) -> None:
    ask(side, calls.End()).finish()
    filled(side)


def session_ended(side: Stores) -> None:
    ask(side, calls.End()).finish()


COMMANDS: dict[str, calls.Command[Any]] = {
    "write": calls.Write((variable(5),)),
    "remove": calls.Remove(("a",)),
    "clear": calls.Clear(),
    "increment": calls.Increment("a", 3),
    "compare and set": calls.CompareAndSet(variable(5), b"1"),
    "compare and set what is missing": calls.CompareAndSet(variable(5), None),
    "write the task": calls.WriteTask(b'"other"'),
    "append": calls.Append(b'"more"'),
    "clear notes": calls.ClearNotes(),
    "touch": calls.Touch(60_000_000),
    "create a checkpoint": calls.CreateCheckpoint("new"),
    "restore a checkpoint": calls.RestoreCheckpoint("kept", "undo"),
    "delete a checkpoint": calls.DeleteCheckpoint("kept"),
    "end": calls.End(),
}
WORKING: dict[str, Case] = {
    f"{name}{'' if prepare else ' of no session'}": (prepare, lambda side, command=command: ask(side, command))
    for name, command in COMMANDS.items()
    for prepare in (filled, None)
}
WORKING["forget_tenant"] = (filled, lambda side: side.begin(side.working.forget_tenant(TENANT)))


def working_left(side: Stores) -> Any:
    variables, notes, task, kept = (
        ask(side, calls.ReadAll(), calls.ReadNotes(), calls.ReadTask(), calls.ListCheckpoints()).finish().results
    )
    found = {key: one.value for key, one in variables.items()}
    return found, notes, task, [one.checkpoint_id for one in kept]


WORKING_MEANWHILE = (session_goes_on, session_made_anew, session_ended)
