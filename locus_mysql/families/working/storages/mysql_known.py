"""What commands on an encrypted session must know before they are sent: `Known`. No I/O.

The server cannot add to an encrypted number, compare encrypted values, or number a note that is bound to its number. So
the variables, their versions and the number of the last note are read first, and the batch is undone if they changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from ....dialect.working.entries import HeldRow
from ....dialect.working.pieces import VARIABLE, SessionKey
from ....errors import InvalidInput
from ....runtime.sealing import Sealing
from .. import calls
from ..errors import not_a_whole_number, out_of_range
from ..sealed_values import open_value
from ..values import canonical_form

#: The longest canonical form that its column holds.
CANONICAL_BYTES = 32


class KnownVariable(NamedTuple):
    """A variable's JSON and its version."""

    value: bytes
    version: int


@dataclass(slots=True)
class Known:
    """Stored content of a session, and how the commands planned before change it.

    Args:
        variables: Variables as they are stored.
        last_note: The number of the last note, those that the call adds included.
        written: Variables that earlier commands of the call write; None: that they remove.
        is_restored: Whether an earlier command of the call restores a checkpoint.
    """

    variables: dict[str, KnownVariable] = field(default_factory=dict)
    last_note: int = 0
    written: dict[str, bytes | None] = field(default_factory=dict)
    is_restored: bool = False

    def forget(self) -> None:
        """Record that a command removes all variables."""
        self.written.update(dict.fromkeys([*self.written, *self.variables]))

    def version(self, name: str) -> int | None:
        """Return the version of a stored variable; None if it does not exist."""
        variable = self.variables.get(name)
        return None if variable is None else variable.version

    def value(self, name: str) -> bytes | None:
        """Return the JSON of a variable; None if it does not exist.

        Raises:
            InvalidInput: The same call restores a checkpoint before.
        """
        if name in self.written:
            return self.written[name]
        if self.is_restored:
            raise InvalidInput(
                "With encryption, a variable cannot be compared or incremented in the call that restores a checkpoint."
            )
        variable = self.variables.get(name)
        return None if variable is None else variable.value

    def matches(self, command: calls.CompareAndSet) -> bool:
        """Return whether a variable is as expected."""
        value = self.value(command.variable.key)
        if value is None or command.canonical is None:
            return value is None and command.canonical is None
        return canonical_form(value) == stored_canonical(command.canonical)

    def sum(self, command: calls.Increment) -> calls.Variable:
        """Return a variable after an increment."""
        return calls.Variable(command.key, sum_of(self.value(command.key), command), b"")


def asked_names(call: calls.Call) -> set[str] | None:
    """Return the variables that must be known before a call is sent to an encrypted session.

    None if nothing needs to be read; an empty set if only the number of the last note is needed.
    """
    names, any_command = set[str](), False
    for command in call.commands:
        match command:
            case calls.Increment(key):
                names.add(key)
            case calls.CompareAndSet(variable):
                names.add(variable.key)
            case calls.Append():
                pass
            case _:
                continue
        any_command = True
    return names if any_command else None


def known_of(key: SessionKey, sealing: Sealing, rows: Sequence[HeldRow]) -> Known:
    """Return what rows say about a session; no rows: it does not exist.

    Raises:
        EncryptionError: There is no key for a variable, or it is in clear text although keys are given.
        CorruptCheckpoint: A variable was changed, or moved from another place.
    """
    known = Known(last_note=rows[0].last_note if rows else 0)
    for row in rows:
        if row.name is not None and row.value is not None and row.version is not None:
            value = open_value(sealing, key, VARIABLE, row.name, row.value)
            known.variables[row.name] = KnownVariable(value, row.version)
    return known


def stored_canonical(value: bytes) -> bytes:
    """Return a canonical form as it is stored: its digest if it is too long for its column."""
    return value if len(value) <= CANONICAL_BYTES else sha256(value).digest()


def sum_of(value: bytes | None, command: calls.Increment) -> bytes:
    """Return the value of a variable after an increment.

    Raises:
        InvalidInput: The variable is not a whole number, or the sum is out of range.
    """
    try:
        number = int(value or b"0")
    except ValueError:
        raise not_a_whole_number(command.key) from None
    if str(number).encode() != (value or b"0") or not calls.INT_LEAST <= number <= calls.INT_MOST:
        raise not_a_whole_number(command.key)
    if not calls.INT_LEAST <= number + command.by <= calls.INT_MOST:
        raise out_of_range(command.key, command.by)
    return str(number + command.by).encode()
