"""SQL as values. The innermost layer: it does no I/O, and imports no other layer and no client library.

`statement` has the values, `sql` the declarations of statements with named parameters and what those of a family are
filled with, `schema` the tables of a family with their checks, `server_roles` the statements about servers and
replication. A family's statements stand in its folder. Begin with `sql`, then `families/checkpoints/statements`.
"""

from .schema import Schema
from .sql import Dialect
from .statement import Param, Query, Statement

__all__ = ["Dialect", "Param", "Query", "Schema", "Statement"]
