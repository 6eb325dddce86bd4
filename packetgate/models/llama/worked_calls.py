"""Tools for models whose chat template shows none: told in the system prompt, with a call worked as an example."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from packetgate.models.llama.call_syntax import OWN
from packetgate.prompts.rendering import render
from packetgate.state.printing import compact_json

EXAMPLE = ("What will the weather be in Oslo on 3 May?", "weather_on", {"place": "Oslo", "day": "3 May"})
"""A request, and the call that it takes, of a tool that nobody has."""
THANKS = ("Thanks!", "You are welcome.")
"""Words that take no call, and the answer."""


def in_words(chat: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a conversation with tools as one of words alone."""
    spoken = [*_spoken(chat)]
    listed = "\n".join(compact_json(one["function"]) for one in tools)
    told = render("tools_in_words", tools=listed, call=OWN.write([(EXAMPLE[1], EXAMPLE[2])]))
    system = [f"{one['content']}\n\n{told}" for one in spoken if one["role"] == "system"][:1] or [told]
    asked, name, arguments = EXAMPLE
    worked = [asked, OWN.write([(name, arguments)]), *THANKS]
    examples = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(worked)]
    others = [one for at, one in enumerate(spoken) if one["role"] != "system" or at]
    return [{"role": "system", "content": system[0]}, *examples, *others]


def _spoken(chat: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    for one in chat:
        text = str(one.get("content") or "")
        if one["role"] == "tool":
            yield {"role": "user", "content": f"<tool_response>\n{text}\n</tool_response>"}
        elif one.get("tool_calls"):
            calls = [(call["function"]["name"], call["function"]["arguments"]) for call in one["tool_calls"]]
            yield {"role": "assistant", "content": OWN.write(calls)}
        else:
            yield {"role": str(one["role"]), "content": text}
