"""Sessions of the OpenAI Agents SDK on MySQL.

Checks the SDK's items, and leaves storage to `families/transcripts`. Begin with `session` and
`branching_session`, the public classes with their operations, then `turns`.
"""

from ...extras import need

need("agents.memory", "The OpenAI Agents SDK", "openai-agents")

from .branching_session import OpenAIBranchingSession
from .session import OpenAISession

__all__ = ["OpenAIBranchingSession", "OpenAISession"]
