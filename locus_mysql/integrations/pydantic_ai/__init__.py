"""Stores of Pydantic AI on MySQL.

Converts the framework's records and messages, and leaves storage to `families`. Begin with `conversations`, the public
class with its operations; `records` converts.
"""

try:
    import pydantic_ai.conversation_store  # noqa: F401 - fails if it is not installed, or too old
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("pydantic_ai"):
        raise
    from ...errors import SetupError
    from ...extras import install_command

    raise SetupError(f"Pydantic AI 2.66 or later is not installed. Run {install_command('pydantic-ai')}.") from error

from .conversations import PydanticConversationStore

__all__ = ["PydanticConversationStore"]
