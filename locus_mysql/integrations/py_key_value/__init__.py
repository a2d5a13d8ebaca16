"""The key-value store of py-key-value, which FastMCP uses, on MySQL.

Converts names, values and times to live, and leaves storage to `families/memories`. Begin with `store`, the public
class with its operations.
"""

try:
    import key_value.aio.protocols  # noqa: F401 - fails if it is not installed
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("key_value"):
        raise
    from ...errors import SetupError
    from ...extras import install_command

    raise SetupError(f"py-key-value is not installed. Run {install_command('py-key-value')}.") from error

from .store import KeyValueStore

__all__ = ["KeyValueStore"]
