"""The key-value store of py-key-value, which FastMCP uses, on MySQL.

Converts names, values and times to live, and leaves storage to `families/memories`. Begin with `store`, the public
class with its operations.
"""

from ...extras import need

need("key_value.aio.protocols", "py-key-value", "py-key-value")

from .store import KeyValueStore

__all__ = ["KeyValueStore"]
