"""Exceptions, sorted by what the caller can do about them.

    LocusMySQLError
    ├── UsageError          correct the call: nothing was written
    │   ├── InvalidInput        an id, metadata, state or pattern that cannot be stored or understood
    │   ├── ThreadExists        copying onto a thread that has checkpoints
    │   ├── CheckpointExists    saving other content under the id of a checkpoint whose history is kept
    │   ├── StateTooLarge       larger than a packet the server accepts
    │   └── TenantUnknown       no tenant could be told for the thread
    ├── SetupError          correct the configuration or the server
    │   ├── ConfigError         options that are wrong or contradict each other
    │   ├── DriverMissing       the client library is not installed
    │   ├── AuthenticationFailed, DatabaseMissing, PrivilegeMissing, ReadOnlyServer
    │   ├── UnsupportedServer   MariaDB, or MySQL before 8.0.19
    │   └── SchemaMismatch      tables that are missing, foreign or of another layout
    ├── Unavailable         try again later: the server could not be reached before the deadline
    │   └── PoolTimeout         every connection of the pool was in use for too long
    └── CorruptCheckpoint   what is stored cannot be read back

Each message says what happened, to which thing, and what to do. None holds a password or the content of a state.
"""

from __future__ import annotations


class LocusMySQLError(Exception):
    """Base of every error raised by this package."""


class UsageError(LocusMySQLError):
    """The call is wrong; nothing was written. Correct the call."""


class InvalidInput(UsageError, ValueError):
    """An argument that cannot be stored exactly, or not be understood."""


class ThreadExists(UsageError):
    """The destination of a copy already has checkpoints; nothing was changed."""


class CheckpointExists(UsageError):
    """The id belongs to a checkpoint of other content; nothing was changed."""


class StateTooLarge(UsageError):
    """A state that needs a larger packet than the server's ``max_allowed_packet``."""


class TenantUnknown(UsageError, ValueError):
    """No tenant could be told for a thread id; the call was not carried out."""


class SetupError(LocusMySQLError):
    """The configuration or the server has to be changed before any call can succeed."""


class ConfigError(SetupError, ValueError):
    """Options that are wrong or contradict each other."""


class DriverMissing(SetupError, ImportError):
    """The client library of the configured driver is not installed."""


class AuthenticationFailed(SetupError):
    """The server refused the user or the password."""


class DatabaseMissing(SetupError):
    """The configured database does not exist."""


class PrivilegeMissing(SetupError):
    """The user lacks a privilege on the tables or the database."""


class ReadOnlyServer(SetupError):
    """The server does not accept writes (``read_only`` or ``super_read_only`` is on)."""


class UnsupportedServer(SetupError):
    """The server is MariaDB, or a MySQL before 8.0.19."""


class SchemaMismatch(SetupError):
    """The tables are missing, of another layout, or not ours."""


class Unavailable(LocusMySQLError):
    """The server could not be reached, or did not carry out the call, before the deadline."""


class PoolTimeout(Unavailable, TimeoutError):
    """Every connection of the pool was in use for longer than ``pool_timeout_s``."""


class CorruptCheckpoint(LocusMySQLError):
    """A stored checkpoint cannot be read back."""
