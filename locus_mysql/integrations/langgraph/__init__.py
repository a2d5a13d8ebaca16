"""LangGraph's checkpointers on MySQL: `AsyncMySQLSaver` and `MySQLSaver`."""

try:
    import langgraph.checkpoint.base  # noqa: F401 - tells whether it is installed
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith(("langgraph", "langchain_core")):
        raise
    from ...errors import SetupError

    raise SetupError(
        "LangGraph is not installed, which these savers are for: pip install 'locus-mysql[langgraph]'"
    ) from error

from .asynchronous import AsyncMySQLSaver
from .copying import CopySummary, acopy_checkpoints, copy_checkpoints
from .synchronous import MySQLSaver

__all__ = ["AsyncMySQLSaver", "CopySummary", "MySQLSaver", "acopy_checkpoints", "copy_checkpoints"]
