"""SQL as values. Imports no client library and does no I/O."""

from .dialect import Dialect
from .schema import Schema
from .statement import Param, Statement

__all__ = ["Dialect", "Param", "Schema", "Statement"]
