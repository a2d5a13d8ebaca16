"""Stores of Pydantic AI on MySQL.

Converts the framework's records and messages, and leaves storage to `families`. Begin with `conversations`, the public
class with its operations; `records` converts.
"""

from ...extras import need

need("pydantic_ai.conversation_store", "Pydantic AI 2.66 or later", "pydantic-ai")

from .conversations import PydanticConversationStore

__all__ = ["PydanticConversationStore"]
