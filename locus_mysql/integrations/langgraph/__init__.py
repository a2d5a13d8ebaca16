"""LangGraph's checkpointers and stores on MySQL."""

try:
    import langgraph.checkpoint.base  # noqa: F401 - tells whether it is installed
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith(("langgraph", "langchain_core")):
        raise
    from ...errors import SetupError

    raise SetupError("LangGraph is not installed, which this is for: pip install 'locus-mysql[langgraph]'") from error

from .asynchronous import AsyncMySQLSaver
from .copying import CopySummary, acopy_checkpoints, copy_checkpoints
from .store import AsyncMySQLStore, MySQLStore
from .synchronous import MySQLSaver

__all__ = [
    "AsyncMySQLSaver",
    "AsyncMySQLStore",
    "CopySummary",
    "MySQLSaver",
    "MySQLStore",
    "acopy_checkpoints",
    "copy_checkpoints",
]
