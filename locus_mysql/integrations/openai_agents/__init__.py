"""Sessions of the OpenAI Agents SDK on MySQL.

Checks the SDK's items, and leaves storage to `families/transcripts`. Begin with `session` and
`branching_session`, the public classes with their operations, then `turns`.
"""

try:
    import agents.memory  # noqa: F401 - fails if it is not installed
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "agents":
        raise
    from ...errors import SetupError
    from ...extras import install_command

    raise SetupError(f"The OpenAI Agents SDK is not installed. Run {install_command('openai-agents')}.") from error

from .branching_session import OpenAIBranchingSession
from .session import OpenAISession

__all__ = ["OpenAIBranchingSession", "OpenAISession"]
