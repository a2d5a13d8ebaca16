"""LangGraph's checkpointers and stores on MySQL.

Converts LangGraph's types, and leaves storage to `families/graphs` and `families/memories`. Begin with `checkpointers`,
then `operations`, which both of them run; `store` has the long-term stores, `transfer` copies from other savers.
"""

from ...extras import need

need("langgraph.checkpoint.base", "LangGraph", "langgraph")

from ...transfer.engine import TransferReport
from .checkpointers import AsyncMySQLSaver, MySQLSaver
from .store import AsyncMySQLStore, MySQLStore
from .transfer.savers import acopy_checkpoints, copy_checkpoints
from .transfer.stores import copy_items

__all__ = [
    "AsyncMySQLSaver",
    "AsyncMySQLStore",
    "MySQLSaver",
    "MySQLStore",
    "TransferReport",
    "acopy_checkpoints",
    "copy_checkpoints",
    "copy_items",
]
