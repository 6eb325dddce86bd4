"""Describe tools in words, for models and servers without tool calling, and write calls and results as plain text."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    convert_to_messages,
    convert_to_openai_messages,
    merge_message_runs,
)

from packetgate.models.call_syntax import DEFAULT_SYNTAX
from packetgate.prompts.rendering import render
from packetgate.state.printing import compact_json

EXAMPLE = ("What will the weather be in Oslo on 3 May?", "weather_on", {"place": "Oslo", "day": "3 May"})
"""An example request, with the tool and arguments for it."""
THANKS = ("Thanks!", "You are welcome.")


def as_chat(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return messages in the format of OpenAI's API, with the arguments of calls as objects."""
    chat: list[dict[str, Any]] = convert_to_openai_messages(list(messages), text_format="string")
    for one in chat:
        for call in one.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return chat


def with_tools_in_words(
    messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], *, must_call: bool
) -> list[BaseMessage]:
    """Return the messages of a request that offers these tools in words; roles alternate, as many servers require."""
    chat = as_chat(messages)
    for one, message in zip(chat, messages, strict=True):
        if isinstance(message, HumanMessage):
            one["content"] = message.content  # images keep their descriptions
    needed = [{"role": "user", "content": render("call_needed")}] if must_call else []
    return merge_message_runs(convert_to_messages([*as_plain_messages(chat, tools), *needed]))


def as_plain_messages(chat: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation as plain text messages, with the tools in the system message and an example call."""
    plain = [*_plain_messages(chat)]
    listed = "\n".join(compact_json(one["function"]) for one in tools)
    instructions = render("tools_in_words", tools=listed, call=DEFAULT_SYNTAX.write([(EXAMPLE[1], EXAMPLE[2])]))
    system = [f"{one['content']}\n\n{instructions}" for one in plain if one["role"] == "system"][:1] or [instructions]
    asked, name, arguments = EXAMPLE
    worked = [asked, DEFAULT_SYNTAX.write([(name, arguments)]), *THANKS]
    examples = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(worked)]
    others = [one for at, one in enumerate(plain) if one["role"] != "system" or at]
    return [{"role": "system", "content": system[0]}, *examples, *others]


def _plain_messages(chat: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in chat:
        content = one.get("content") or ""
        if one["role"] == "tool":
            yield {"role": "user", "content": f"<tool_response>\n{content}\n</tool_response>"}
        elif one.get("tool_calls"):
            calls = [(call["function"]["name"], call["function"]["arguments"]) for call in one["tool_calls"]]
            yield {"role": "assistant", "content": DEFAULT_SYNTAX.write(calls)}
        else:
            yield {"role": str(one["role"]), "content": content}
