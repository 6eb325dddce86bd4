"""The marks that models write around thoughts, tool calls and tool results."""

import re
from typing import NamedTuple


class Frame(NamedTuple):
    """The begin mark and end mark of a section of model output."""

    begin: str
    end: str


def any_of(*marks: str) -> str:
    """Return a regular expression that matches any of these texts, the longest first."""
    return "|".join(re.escape(mark) for mark in sorted(marks, key=len, reverse=True))


THOUGHTS = (
    Frame("<think>", "</think>"),  # Qwen, DeepSeek, Granite, Phi, Hermes, Nemotron
    Frame("<thinking>", "</thinking>"),
    Frame("<thought>", "</thought>"),
    Frame("<reasoning>", "</reasoning>"),
    Frame("[THINK]", "[/THINK]"),  # Mistral
    Frame("<|channel>", "<channel|>"),  # Gemma 4
)
CALLS = (
    Frame("<tool_call>", "</tool_call>"),  # Hermes, Qwen, Granite 4
    Frame("<tool_calls>", "</tool_calls>"),
    Frame("<function_call>", "</function_call>"),
    Frame("<function_calls>", "</function_calls>"),
    Frame("<|tool_call|>", "<|/tool_call|>"),  # Granite 3, Phi 4
    Frame("<|python_tag|>", "<|eom_id|>"),  # Llama 3
    Frame("<|python_start|>", "<|python_end|>"),  # Llama 4
    Frame("<|tool_call_start|>", "<|tool_call_end|>"),  # LFM 2
    Frame("[TOOL_CALLS]", "[/TOOL_CALLS]"),  # Mistral
    Frame("```tool_code\n", "```"),  # Gemma 3
    Frame("<start_function_call>", "<end_function_call>"),  # FunctionGemma
    Frame("<|tool_call>", "<tool_call|>"),  # Gemma 4
    Frame("<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"),  # DeepSeek V3
    Frame("<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"),
)
_TAG = r"(?:\w{1,12}[:_])?(?:think|thinking|thought|reasoning)(?::\w{1,16})?"
THOUGHT_BEGIN = rf"<{_TAG}>|\[THINK\]|\u25c1think\u25b7|<\|channel>"
THOUGHT_END = rf"</{_TAG}>|\[/THINK\]|\u25c1/think\u25b7|<channel\|>"
"""Patterns of the marks in `THOUGHTS` and their variants, such as `<seed:think>`."""

ECHOES = (
    Frame("<tool_response>", "</tool_response>"),
    Frame("<start_function_response>", "<end_function_response>"),
    Frame("<|tool_response>", "<tool_response|>"),
    Frame("<|header_start|>", "<|header_end|>"),  # Llama 4
    Frame("<|start_header_id|>", "<|end_header_id|>"),  # Llama 3
)
"""Tool results and turn headers that a model makes up."""

CHANNEL = r"<\|(?:start|channel)\|>"
"""gpt-oss: begins a header, which `<|message|>` ends. `analysis` marks a thought, `to=` a call."""
HEADER_END = "<|message|>"
CHANNEL_END = r"<\|end\|>|<\|call\|>|<\|return\|>|(?=<\|(?:start|channel)\|>)"

CONTROL = r"<[|\uff5c][^|\uff5c<>\n]{1,100}[|\uff5c]>|</s>|<(?:start|end)_of_turn>|<\|?turn\|?>"
"""Pattern of a control token of a chat template."""
