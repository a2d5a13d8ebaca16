"""The steps of checks, and the runners of a check for both sides of a storage."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, cast

from locus_mysql.engine.operation import drive_awaited, drive_blocking
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.interface import Storage

T = TypeVar("T")

#: How long a check waits for a result, in seconds: far longer than it takes on a busy machine.
PATIENCE_S = 60.0


class ContractBroken(AssertionError):
    """A storage does not behave as `calls` specifies; the message has the expected and the actual value."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next attempt."""

    seconds: float = 0.02


@dataclass(frozen=True, slots=True)
class Sweep:
    """Have the storage remove expired sessions. The script is sent the number that it returns."""

    limit: int = 1_000


@dataclass(frozen=True, slots=True)
class ForgetTenant:
    """Have the storage remove all sessions of a tenant. The script is sent the number that it returns."""

    tenant: str


@dataclass(frozen=True, slots=True)
class Together:
    """Run several steps at once, in threads or in tasks. The script is sent the result of each."""

    scripts: tuple[Script[Any], ...]


#: A step that a check yields: it is sent the result, or the storage's error is raised in it.
Step: TypeAlias = calls.Call | Pause | Sweep | ForgetTenant | Together

#: A running check. Like the package's operations it does no I/O, so it runs on both sides of a storage.
Script: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Check:
    """One behaviour that all storages share.

    Args:
        name: The behaviour, as a sentence without spaces.
        begin: Begins the check, with sessions that no other check uses.
    """

    name: str
    begin: Callable[[Sessions], Script[None]]

    async def run(self, storage: Storage) -> None:
        """Check the asynchronous side of a storage.

        Raises:
            ContractBroken: The storage does not behave as specified.
        """
        await _run(storage, self.begin(Sessions()))

    def run_blocking(self, storage: Storage) -> None:
        """Check the blocking side of a storage.

        Raises:
            ContractBroken: The storage does not behave as specified.
        """
        _run_blocking(storage, self.begin(Sessions()))


@dataclass(frozen=True)
class CheckedSession:
    """A session for a check."""

    address: calls.Address
    limits: calls.Limits = field(default_factory=calls.Limits)
    ttl_us: int | None = None

    def call(self, *commands: calls.Command[object], **options: Any) -> calls.Call:
        """Return a call of these commands."""
        return calls.Call(
            "check",
            self.address,
            commands,
            **{"limits": self.limits, "ttl_us": self.ttl_us, "token": token(), **options},
        )

    def ask(self, *commands: calls.Command[object], **options: Any) -> Script[calls.Reply]:
        """Make a call, and get its reply."""
        reply = yield self.call(*commands, **options)
        if not isinstance(reply, calls.Reply):
            raise ContractBroken(f"{commands} was answered with {reply!r}, which is not a Reply.")
        equal(len(reply.results), len(commands), f"the number of results of {commands}")
        return reply

    def do(self, command: calls.Command[T], **options: Any) -> Script[T]:
        """Make a call of one command, and get its result."""
        reply = yield from self.ask(command, **options)
        return cast(T, reply.results[0])

    def gives(self, command: calls.Command[T], expected: object, **options: Any) -> Script[None]:
        """Make a call of one command, and check its result."""
        equal((yield from self.do(command, **options)), expected, f"the result of {command}")

    def refused(self, error: type[Exception], *commands: calls.Command[object], **options: Any) -> Script[Any]:
        """Make a call that must be refused, and get the error."""
        try:
            reply = yield self.call(*commands, **options)
        except error as refusal:
            return refusal
        raise ContractBroken(f"{commands} should raise {error.__name__}, and returned {reply!r}.")

    def until(self, command: calls.Command[T], reached: Callable[[T], bool], what: str) -> Script[T]:
        """Repeat a command until it has the expected result."""
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

    def limited(self, **limits: Any) -> CheckedSession:
        """Return the same session, with other limits."""
        return replace(self, limits=replace(self.limits, **limits))


class Sessions:
    """Creates sessions that no other check uses, even on a shared storage."""

    def __init__(self) -> None:
        self.tenant = f"check-{secrets.token_hex(8)}"

    def new(self, *, ttl_us: int | None = None, **limits: Any) -> CheckedSession:
        """Return a new session."""
        return CheckedSession(calls.Address(self.tenant, secrets.token_hex(8)), calls.Limits(**limits), ttl_us)

    def named(self, tenant: str, session_id: str) -> CheckedSession:
        """Return the session with this id, of a tenant of this check."""
        return CheckedSession(calls.Address(f"{self.tenant}{tenant}", session_id))


def token() -> bytes:
    """Return a random token for a call."""
    return secrets.token_bytes(16)


def variable(key: str, value: bytes | str = b"1", ttl_us: int | None = None) -> calls.Variable:
    """Return a variable to write."""
    return calls.Variable(key, value.encode() if isinstance(value, str) else value, ttl_us)


def equal(actual: object, expected: object, what: str) -> None:
    """Check that a value is the expected one.

    Raises:
        ContractBroken: It is not.
    """
    if actual != expected:
        raise ContractBroken(f"{what}: expected {_short(expected)}, got {_short(actual)}.")


def true(condition: bool, what: str) -> None:
    """Check that a condition holds.

    Raises:
        ContractBroken: It is not.
    """
    if not condition:
        raise ContractBroken(f"Expected, but not true: {what}.")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 2_000 else f"{text[:1_000]} … {text[-1_000:]}"


async def _run(storage: Storage, script: Script[T]) -> T:
    async def do(step: Step) -> object:
        match step:
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case Sweep(limit):
                return await storage.sweep(limit)
            case ForgetTenant(tenant):
                return await storage.forget_tenant(tenant)
            case Together(scripts):
                return await asyncio.gather(*(_run(storage, each) for each in scripts))
            case calls.Call():
                return await storage.execute(step)

    return await drive_awaited(script, do)


def _run_blocking(storage: Storage, script: Script[T]) -> T:
    def do(step: Step) -> object:
        match step:
            case Pause(seconds):
                return time.sleep(seconds)
            case Sweep(limit):
                return storage.sweep_blocking(limit)
            case ForgetTenant(tenant):
                return storage.forget_tenant_blocking(tenant)
            case Together(scripts):
                with ThreadPoolExecutor(len(scripts)) as threads:
                    return list(threads.map(lambda each: _run_blocking(storage, each), scripts))
            case calls.Call():
                return storage.execute_blocking(step)

    return drive_blocking(script, do)
