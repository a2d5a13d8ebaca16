"""The states of CrewAI's flows and the records of its memory on MySQL: `flows` and `memories`, the public classes."""

try:
    import crewai.flow.persistence.base
    import crewai.memory.storage.backend  # noqa: F401 - fails if it is not installed, or too old
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("crewai"):
        raise
    from ...errors import SetupError
    from ...extras import install_command

    raise SetupError(f"CrewAI 1.15.30 or later is not installed. Run {install_command('crewai')}.") from error

from .flows import CrewFlowPersistence
from .memories import CrewMemoryStorage

__all__ = ["CrewFlowPersistence", "CrewMemoryStorage"]
