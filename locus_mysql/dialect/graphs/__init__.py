"""The SQL of the family `versions`: every checkpoint of a thread's history, its values, and writes on their way."""

from .dialect import VersionDialect
from .rows import VersionRow, WriteRow

__all__ = ["VersionDialect", "VersionRow", "WriteRow"]
