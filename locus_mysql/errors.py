"""Exceptions, sorted by what the caller can do about them.

    LocusMySQLError
    ├── UsageError          correct the call: nothing was written
    │   ├── InvalidInput        an id, metadata, state or pattern that cannot be stored or understood
    │   ├── VersionConflict     an item has another version than the write relied on
    │   ├── NotFound            a memory or checkpoint to be changed, linked or restored does not exist
    │   ├── CapacityExceeded    a working session is full
    │   ├── ThreadExists        copying onto a thread that has checkpoints
    │   ├── CheckpointExists    saving other content under the id of a checkpoint whose history is kept
    │   ├── StateTooLarge       larger than a packet the server accepts
    │   ├── AnswerTooLarge      the answer is larger than the limit of one request
    │   └── TenantUnknown       no tenant could be determined for the thread
    ├── SetupError          correct the configuration or the server
    │   ├── ConfigError         options that are wrong or contradict each other
    │   ├── DriverMissing       the client library is not installed
    │   ├── LocusMissing        the Locus SDK is not installed
    │   ├── AuthenticationFailed, DatabaseMissing, PrivilegeMissing, ReadOnlyServer
    │   ├── UnsupportedServer   MariaDB, or MySQL before 8.0.19
    │   ├── EncryptionError     a row whose key is missing, clear text where encryption is required, or a family that
    │   │                       does not support encryption
    │   ├── CryptographyMissing the extra ``encryption`` is not installed
    │   └── SchemaMismatch      tables that are missing, foreign, or changed by hand
    │       ├── OlderLayout         tables of an older version: run `locus-mysql migrate`
    │       └── NewerLayout         tables of a newer version: upgrade this program
    ├── Unavailable         try again later: the server could not be reached before the deadline
    │   ├── PoolTimeout         every connection of the pool was in use for too long
    │   └── TransactionLost     the program's own transaction has ended, and nothing of it is stored: run it again
    ├── Conflict            another process saved to the thread meanwhile: nothing was saved; load again, then decide
    ├── ThreadBusy          another caller has the turn on the thread: try again later
    ├── TurnLost            the turn is over, so nothing was written; take another one, and load again
    └── CorruptCheckpoint   what is stored cannot be read back
        └── DecryptionFailed    an encrypted row was changed, or moved to another row

Each message says what happened, to which thing, and what to do. None holds a password or the content of a state.
"""

from __future__ import annotations


class LocusMySQLError(Exception):
    """Base of every error raised by this package."""


class UsageError(LocusMySQLError):
    """The call is wrong; nothing was written. Correct the call."""


class InvalidInput(UsageError, ValueError):
    """An argument that cannot be stored exactly, or cannot be understood."""


class VersionConflict(UsageError):
    """An item has another version than a write relied on; nothing was changed.

    Args:
        message: Names the item and its version.
    """


class NotFound(UsageError, KeyError):
    """An item to be changed, linked or referred to does not exist; nothing was written.

    Args:
        message: Names the item.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class CapacityExceeded(UsageError):
    """A write would exceed a limit of a working session; nothing was changed.

    Args:
        limit: The name of the option that sets the limit.
        used: The amount after the write.
        allowed: The limit.
        session_id: The session.
    """

    def __init__(self, limit: str, used: int, allowed: int, session_id: str) -> None:
        super().__init__(limit, used, allowed, session_id)
        self.limit = limit
        self.used = used
        self.allowed = allowed
        self.session_id = session_id

    def __str__(self) -> str:
        return (
            f"Nothing was written to session {self.session_id!r}: it would have {self.used} of {self.limit}, and the "
            f"limit is {self.allowed}. Delete what is not needed, give variables a time to live, raise {self.limit}, "
            "or let on_full='evict' remove variables that were not used lately."
        )


class ThreadExists(UsageError):
    """The destination of a copy already has checkpoints; nothing was changed."""


class CheckpointExists(UsageError):
    """The id belongs to a checkpoint of other content; nothing was changed."""


class ParentMissing(UsageError):
    """The thread has no checkpoint with the id that a save named as its parent; nothing was saved."""


class StateTooLarge(UsageError):
    """A state that needs a larger packet than the server's ``max_allowed_packet``."""


class AnswerTooLarge(UsageError):
    """The answer exceeds the limit of the process that asked; nothing was written."""


class TenantUnknown(UsageError, ValueError):
    """No tenant could be determined for a thread id, or for a call with `tenant=None`; it was not carried out."""


class SetupError(LocusMySQLError):
    """The configuration or the server must be changed before any call can succeed."""


class ConfigError(SetupError, ValueError):
    """Options that are wrong or contradict each other."""


class DriverMissing(SetupError, ImportError):
    """The client library of the configured driver is not installed."""


class LocusMissing(SetupError, ImportError):
    """The Locus SDK is not installed, or another package has its name."""


class AuthenticationFailed(SetupError):
    """The server refused the user or the password."""


class DatabaseMissing(SetupError):
    """The configured database does not exist."""


class PrivilegeMissing(SetupError):
    """The user lacks a privilege on the tables or the database."""


class ReadOnlyServer(SetupError):
    """The server does not accept writes (``read_only`` or ``super_read_only`` is on)."""


class UnsupportedServer(SetupError):
    """The server is MariaDB, a MySQL before 8.0.19, or an engine that does not support the tables of a call."""


class SchemaMismatch(SetupError):
    """The tables are missing, not ours, of another layout, or differ from what this version creates."""


class OlderLayout(SchemaMismatch):
    """The tables have the layout of an older version; ``locus-mysql migrate`` changes them."""


class NewerLayout(SchemaMismatch):
    """The tables have the layout of a newer version, which this version cannot use."""


class EncryptionError(SetupError):
    """The keys do not fit the rows.

    A row's key is unknown, a row is encrypted and the program has no keys, a row is in clear text where encryption is
    required, or a family of tables does not support encryption. No message shows a key.
    """


class CryptographyMissing(SetupError, ImportError):
    """Encryption is configured, and the package ``cryptography`` is not installed."""


class Unavailable(LocusMySQLError):
    """The server could not be reached, or did not carry out the call, before the deadline."""


class PoolTimeout(Unavailable, TimeoutError):
    """Every connection of the pool was in use for longer than ``pool_timeout_s``."""


class TransactionLost(Unavailable):
    """The transaction of a program (`Database.using`) has ended, by a deadlock or with its connection: run it again.

    Nothing of it is stored. Or the program has ended it itself: then this call did nothing; make another `using`.
    """


class Conflict(LocusMySQLError):
    """Another process or run saved to the thread meanwhile; nothing was saved. Load the newest checkpoint, then decide.

    Args:
        thread_id: The thread.
        expected: The id of the checkpoint that the save relied on as the newest; None for no checkpoint, or for one
            that was deleted meanwhile.
        newest: The id of the checkpoint that is the newest; None if there is none.
    """

    def __init__(self, thread_id: str, expected: str | None, newest: str | None) -> None:
        super().__init__(thread_id, expected, newest)
        self.thread_id = thread_id
        self.expected = expected
        self.newest = newest

    def __str__(self) -> str:
        built_on = "no stored checkpoint" if self.expected is None else f"checkpoint {self.expected!r}"
        there = "it has none" if self.newest is None else f"its newest is {self.newest!r}"
        return (
            f"Nothing was saved to thread {self.thread_id!r}: the state builds on {built_on}, and {there}. Load the "
            "thread again and save on top of that."
        )


class ThreadBusy(LocusMySQLError, TimeoutError):
    """Another caller had the turn on the thread or session during the whole wait.

    Args:
        thread_id: The thread or session.
        wait_s: The length of the wait, in seconds.
    """

    def __init__(self, thread_id: str, wait_s: float) -> None:
        super().__init__(thread_id, wait_s)
        self.thread_id = thread_id
        self.wait_s = wait_s

    def __str__(self) -> str:
        kept = f", and kept it for {self.wait_s:g} s" if self.wait_s else ""
        return f"Another caller has the turn on {self.thread_id!r}{kept}. Try again, or raise wait_s."


class TurnLost(LocusMySQLError):
    """A write in a turn that is over; nothing was written. Another caller may have written since.

    Args:
        thread_id: The thread.
        reason: Why it is over.
    """

    def __init__(self, thread_id: str, reason: str) -> None:
        super().__init__(thread_id, reason)
        self.thread_id = thread_id
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"Nothing was written to {self.thread_id!r}: the turn is over, as {self.reason}. Take another turn, "
            "and load it again."
        )


class CorruptCheckpoint(LocusMySQLError):
    """A stored checkpoint cannot be read back."""


class DecryptionFailed(CorruptCheckpoint):
    """An encrypted row does not fit its authentication tag: it was changed, or moved from another row."""
