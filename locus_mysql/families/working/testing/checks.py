"""What a check is, and how one is run on either side of a storage."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, cast

from ..calls import Address, Call, Command, Limits, Reply, Variable
from ..storages.interface import Storage

T = TypeVar("T")

#: For how long a check waits for what time brings, in seconds: far longer than that takes on a busy machine.
PATIENCE_S = 60.0


class ContractBroken(AssertionError):
    """A storage does otherwise than `calls` says; the message tells what was expected."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait a moment before looking again."""

    seconds: float = 0.02


@dataclass(frozen=True, slots=True)
class Sweep:
    """Have the storage remove expired sessions; answered with how many it said."""

    limit: int = 1_000


@dataclass(frozen=True, slots=True)
class ForgetTenant:
    """Have the storage remove all sessions of a tenant; answered with how many it said."""

    tenant: str


@dataclass(frozen=True, slots=True)
class Together:
    """Do several things at once, in threads or in tasks; answered with what each returned."""

    scripts: tuple[Script[Any], ...]


#: What a check asks for: it is sent the answer, or the storage's error is raised in it.
Step: TypeAlias = Call | Pause | Sweep | ForgetTenant | Together

#: A check while it runs: it does no input or output itself, as the package's operations, so both sides are asked alike.
Script: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that every storage does alike.

    Args:
        name: What it does, as a sentence without spaces.
        begin: Begins the check, with sessions that nobody else has.
    """

    name: str
    begin: Callable[[Sessions], Script[None]]

    async def run(self, storage: Storage) -> None:
        """Check the asynchronous side of a storage.

        Raises:
            ContractBroken: It does otherwise.
        """
        await _run(storage, self.begin(Sessions()))

    def run_blocking(self, storage: Storage) -> None:
        """Check the blocking side of a storage.

        Raises:
            ContractBroken: It does otherwise.
        """
        _run_blocking(storage, self.begin(Sessions()))


@dataclass(frozen=True)
class Session:
    """A session to try things on."""

    address: Address
    limits: Limits = field(default_factory=Limits)
    ttl_us: int | None = None

    def call(self, *commands: Command[object], **options: Any) -> Call:
        """A call of these commands."""
        return Call(
            "check",
            self.address,
            commands,
            **{"limits": self.limits, "ttl_us": self.ttl_us, "token": token(), **options},
        )

    def ask(self, *commands: Command[object], **options: Any) -> Script[Reply]:
        """Make a call, and get its reply."""
        reply = yield self.call(*commands, **options)
        if not isinstance(reply, Reply):
            raise ContractBroken(f"{commands} was answered with {reply!r}, which is no Reply.")
        equal(len(reply.results), len(commands), f"the number of results of {commands}")
        return reply

    def do(self, command: Command[T], **options: Any) -> Script[T]:
        """Make a call of one command, and get its result."""
        reply = yield from self.ask(command, **options)
        return cast(T, reply.results[0])

    def refused(self, error: type[Exception], *commands: Command[object], **options: Any) -> Script[Any]:
        """Make a call that is to be refused, and get the error."""
        try:
            reply = yield self.call(*commands, **options)
        except error as refusal:
            return refusal
        raise ContractBroken(f"{commands} was to raise {error.__name__}, and was answered with {reply!r}.")

    def until(self, command: Command[T], reached: Callable[[T], bool], what: str) -> Script[T]:
        """Repeat a command until its result is as wanted."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            result = yield from self.do(command)
            if reached(result):
                return result
            if time.monotonic() > deadline:
                raise ContractBroken(
                    f"In {PATIENCE_S:g} s it did not come to this: {what}. The last result: {result!r}."
                )
            yield Pause()

    def limited(self, **limits: Any) -> Session:
        """The same session, with other limits."""
        return replace(self, limits=replace(self.limits, **limits))


class Sessions:
    """Makes sessions that nobody else has, also on a storage that others use."""

    def __init__(self) -> None:
        self.tenant = f"check-{secrets.token_hex(8)}"

    def new(self, *, ttl_us: int | None = None, **limits: Any) -> Session:
        """A session."""
        return Session(Address(self.tenant, secrets.token_hex(8)), Limits(**limits), ttl_us)

    def named(self, tenant: str, session_id: str) -> Session:
        """The session of this id, of a tenant of this check."""
        return Session(Address(f"{self.tenant}{tenant}", session_id))


def token() -> bytes:
    """One for a call."""
    return secrets.token_bytes(16)


def variable(key: str, value: bytes | str = b"1", ttl_us: int | None = None, likeness: bytes | None = None) -> Variable:
    """A variable whose likeness is its JSON, unless another one is given."""
    value = value.encode() if isinstance(value, str) else value
    return Variable(key, value, value if likeness is None else likeness, ttl_us)


def equal(actual: object, expected: object, what: str) -> None:
    """Check that something is as expected.

    Raises:
        ContractBroken: It is not.
    """
    if actual != expected:
        raise ContractBroken(f"Not as expected is {what}. It is {_short(actual)}, expected was {_short(expected)}.")


def true(condition: bool, what: str) -> None:
    """Check that something is so.

    Raises:
        ContractBroken: It is not.
    """
    if not condition:
        raise ContractBroken(f"It is not so: {what}.")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 2_000 else f"{text[:1_000]} … {text[-1_000:]}"


async def _run(storage: Storage, script: Script[T]) -> T:
    answer: object = None
    error: Exception | None = None
    while True:
        try:
            step = script.send(answer) if error is None else script.throw(error)
        except StopIteration as done:
            return cast(T, done.value)
        answer = error = None
        try:
            match step:
                case Call():
                    answer = await storage.execute(step)
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Sweep(limit):
                    answer = await storage.sweep(limit)
                case ForgetTenant(tenant):
                    answer = await storage.forget_tenant(tenant)
                case Together(scripts):
                    answer = await asyncio.gather(*(_run(storage, each) for each in scripts))
        except Exception as raised:
            error = raised


def _run_blocking(storage: Storage, script: Script[T]) -> T:
    answer: object = None
    error: Exception | None = None
    while True:
        try:
            step = script.send(answer) if error is None else script.throw(error)
        except StopIteration as done:
            return cast(T, done.value)
        answer = error = None
        try:
            match step:
                case Call():
                    answer = storage.execute_blocking(step)
                case Pause(seconds):
                    time.sleep(seconds)
                case Sweep(limit):
                    answer = storage.sweep_blocking(limit)
                case ForgetTenant(tenant):
                    answer = storage.forget_tenant_blocking(tenant)
                case Together(scripts):
                    answer = _run_in_threads(storage, scripts)
        except Exception as raised:
            error = raised


def _run_in_threads(storage: Storage, scripts: tuple[Script[Any], ...]) -> list[object]:
    results: dict[int, object] = {}
    errors: list[Exception] = []

    def run(place: int) -> None:
        try:
            results[place] = _run_blocking(storage, scripts[place])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(scripts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(scripts))]
