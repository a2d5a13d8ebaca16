"""The SQL of graphs: every checkpoint of a thread's history, its values, and pending writes.

Imports only `locus_mysql.dialect`. Begin with `tables`, then `dialect`, which combines the statements;
`new_rows` has the rows that statements write, `result_rows` those that they return.
"""

from .dialect import GraphDialect
from .new_rows import GraphCheckpointRow, WriteRow

__all__ = ["GraphCheckpointRow", "GraphDialect", "WriteRow"]
