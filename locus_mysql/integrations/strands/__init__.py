"""The storage, the session repository and the memory store of Strands Agents on MySQL.

Converts the framework's bytes, sessions and memories, and leaves storage to `families/checkpoints`,
`families/transcripts` and `families/memories`. Begin with `storage`, `sessions` and `memories`, the public classes,
then with their operations.
"""

try:
    import strands  # noqa: F401 - fails if it is not installed
except ModuleNotFoundError as error:
    if error.name != "strands":
        raise
    from ...errors import SetupError
    from ...extras import install_command

    raise SetupError(f"Strands Agents is not installed. Run {install_command('strands')}.") from error

from .memories import StrandsMemoryStore
from .sessions import StrandsSessionRepository
from .storage import StrandsStorage

__all__ = ["StrandsMemoryStore", "StrandsSessionRepository", "StrandsStorage"]
