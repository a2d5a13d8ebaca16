"""The agent of a shop, with a scripted model in place of a language model: `root_agent`."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.load_memory_tool import load_memory_tool
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Content, FunctionCall, FunctionResponse, GenerateContentResponseUsageMetadata, Part


def remember_name(name: str, tool_context: ToolContext) -> str:
    """Remember the user's name in all of the user's sessions."""
    tool_context.state["user:name"] = name
    return f"{name} it is"


class Scripted(BaseLlm):
    """A model that answers by fixed rules, from the whole conversation in the request."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer the last message, or the result of the last call."""
        content = Content(role="model", parts=[answer(llm_request.contents)])
        usage = GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=content, usage_metadata=usage)


def answer(contents: Sequence[Content]) -> Part:
    """Return the answer: a call of a tool, or a text."""
    parts = [part for content in contents for part in content.parts or ()]
    asked = [part.text for content in contents if content.role == "user" for part in content.parts or () if part.text]
    if parts and (result := parts[-1].function_response) is not None:
        return Part(text=_of_result(result))
    last = asked[-1] if asked else ""
    if named := re.fullmatch(r"I am (\w+)\.", last):
        return Part(function_call=FunctionCall(name="remember_name", args={"name": named[1]}))
    if last.startswith("Do you remember"):
        return Part(function_call=FunctionCall(name="load_memory", args={"query": last}))
    return Part(text=f"You have said {len(asked)} things, first: {asked[0] if asked else 'nothing'}")


def _of_result(result: FunctionResponse) -> str:
    if result.name != "load_memory":
        return "I shall remember."
    texts = re.findall(r"text='([^']*)'", str(result.response)) or re.findall(
        r"'text': '([^']*)'", str(result.response)
    )
    said = [text for text in texts if not text.startswith(("You have", "I shall"))]
    return f"You said: {' '.join(said)}" if said else "I remember nothing."


root_agent = LlmAgent(
    name="shop",
    model=Scripted(model="scripted"),
    instruction="You work in a shop.",
    tools=[remember_name, load_memory_tool],
    output_key="last_answer",
)
