"""Stores of Pydantic AI Harness on MySQL.

Converts the framework's files, runs, events and snapshots, and leaves storage to `families`. Begin with `memories` and
`steps`, the public classes, then `file_operations`, `run_operations` and `snapshots`; `records` converts.
"""

try:
    import pydantic_ai_harness.memory
    import pydantic_ai_harness.step_persistence  # noqa: F401 - fails if it is not installed
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("pydantic_ai"):
        raise
    from ...errors import SetupError
    from ...extras import install_command

    raise SetupError(f"Pydantic AI Harness is not installed. Run {install_command('pydantic-ai-harness')}.") from error

from .memories import PydanticMemoryStore
from .steps import PydanticStepStore

__all__ = ["PydanticMemoryStore", "PydanticStepStore"]
