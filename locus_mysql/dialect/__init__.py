"""SQL as values. The innermost layer: it does no I/O, and imports no other layer and no client library.

`statement` has the values, `sql` the declarations of statements with named parameters, `schema` the tables of a family
with their checks, `server_roles` the statements about servers and replication. `dialect` holds what the statements of a
family are filled with; they stand in the family's folder. Begin with `sql`, then `families/checkpoints/statements`.
"""

from .dialect import Dialect
from .schema import Schema
from .statement import Param, Query, Statement

__all__ = ["Dialect", "Param", "Query", "Schema", "Statement"]
