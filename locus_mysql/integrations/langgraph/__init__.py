"""LangGraph's checkpointers and stores on MySQL.

Converts LangGraph's types, and leaves storage to `families/graphs` and `families/memories`. Begin with `checkpointers`,
then `operations`, which both of them run; `store` has the long-term stores, `transfer` copies from other savers.
"""

try:
    import langgraph.checkpoint.base  # noqa: F401 - fails if it is not installed
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith(("langgraph", "langchain_core")):
        raise
    from ...errors import SetupError
    from ...extras import install_command

    raise SetupError(f"LangGraph is not installed. Run {install_command('langgraph')}.") from error

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
