"""Count tokens with a real vocabulary, and format tools in other libraries' protocols."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from mistral_common.tokens.tokenizers.base import Tokenizer
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

from packetgate.state.printing import compact_json
from packetgate.tools.spec.tool_spec import ToolSpec

VOCABULARY = "Tekken v3 of mistral-common, 131,072 tokens"


def count(text: str) -> int:
    """Return the number of tokens of a text, without start and end tokens."""
    return len(tokens(text))


def tokens(text: str) -> list[int]:
    """Return the tokens of a text, without start and end tokens."""
    return _tokenizer().encode(text, bos=False, eos=False)


def openai_tools(tools: Iterable[ToolSpec]) -> str:
    """Return the `tools` of a request to an OpenAI-compatible endpoint."""
    return compact_json([openai_tool(tool.name, tool.full, tool.input_schema) for tool in tools])


def openai_tool(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return one tool of such a request."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


@cache
def _tokenizer() -> Tokenizer:
    return MistralTokenizer.v3(is_tekken=True).instruct_tokenizer.tokenizer
