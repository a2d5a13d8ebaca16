"""LangGraph's stores on MySQL: `AsyncMySQLStore` and `MySQLStore`."""

from .store import AsyncMySQLStore, MySQLStore

__all__ = ["AsyncMySQLStore", "MySQLStore"]
