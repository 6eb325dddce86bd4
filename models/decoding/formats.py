"""The formats of today's models, as a table: what opens and ends a thought, a call, and what a tool returned.

What is written between the marks of a call stands in `bodies`: any body may stand in any frame. A format that is not
here is not guessed at.
"""

from typing import NamedTuple


class Frame(NamedTuple):
    """What opens a part of a text, and what ends it."""

    begin: str
    end: str


ANT, DSML = "antml:", "\uff5cDSML\uff5c"
"""What Claude and DeepSeek V3.2 put before the names of their tags."""

THOUGHTS = (
    Frame("<think>", "</think>"),  # Qwen, DeepSeek, GLM, MiniMax, Granite, Phi, OLMo, Nemotron, Hermes
    Frame("<thinking>", "</thinking>"),  # Claude
    Frame("<reasoning>", "</reasoning>"),
    Frame("<thought>", "</thought>"),
    Frame("<seed:think>", "</seed:think>"),
    Frame("[THINK]", "[/THINK]"),  # Magistral
    Frame("\u25c1think\u25b7", "\u25c1/think\u25b7"),  # Kimi
    Frame("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    Frame("<|channel>", "<channel|>"),  # Gemma 4
)

CALLS = (
    Frame("<tool_call>", "</tool_call>"),  # Hermes, Qwen, Qwen Coder, GLM 4.5, Granite 4
    Frame("<tool_calls>", "</tool_calls>"),  # MiniMax M1, xLAM
    Frame("<function_call>", "</function_call>"),
    Frame("<functioncall>", "</functioncall>"),
    Frame("<function_calls>", "</function_calls>"),  # Claude, OLMo 3
    Frame(f"<{ANT}function_calls>", f"</{ANT}function_calls>"),
    Frame(f"<{DSML}function_calls>", f"</{DSML}function_calls>"),  # DeepSeek V3.2
    Frame(f"<{DSML}tool_calls>", f"</{DSML}tool_calls>"),
    Frame("<minimax:tool_call>", "</minimax:tool_call>"),  # MiniMax M2
    Frame("<seed:tool_call>", "</seed:tool_call>"),
    Frame("<tool_use>", "</tool_use>"),
    Frame("<TOOLCALL>", "</TOOLCALL>"),  # Nemotron
    Frame("<|tool_call|>", "<|/tool_call|>"),  # Granite 3, Phi
    Frame("<|tool_call>", "<tool_call|>"),  # Gemma 4
    Frame("<start_function_call>", "<end_function_call>"),  # FunctionGemma
    Frame("<|tool_call_start|>", "<|tool_call_end|>"),  # LFM2
    Frame("<|START_ACTION|>", "<|END_ACTION|>"),  # Command A
    Frame("<|python_tag|>", "<|eom_id|>"),  # Llama 3
    Frame("<|python_start|>", "<|python_end|>"),  # Llama 4
    Frame("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),  # Kimi K2
    Frame("<|tool_call_begin|>", "<|tool_call_end|>"),
    Frame("<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"),  # DeepSeek V3
    Frame("<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"),
    Frame("[TOOL_CALLS]", "[/TOOL_CALLS]"),  # Mistral
    Frame("```tool_code\n", "```"),  # Gemma 3
    Frame("```tool_call\n", "```"),
)

ECHOES = (
    Frame("<tool_response>", "</tool_response>"),
    Frame("<|tool_response>", "<tool_response|>"),
    Frame("<start_function_response>", "<end_function_response>"),
    Frame("<function_results>", "</function_results>"),
)
"""Around what a tool returned: only a model that makes it up writes them."""

OPENINGS = (
    Frame("Thought:", "Final Answer:"),  # ReAct
    Frame("Here is my thought process:", "Here is my response:"),  # Granite 3
)
"""Thoughts whose marks are words: they count at the very beginning of a text."""

TOKENS = (
    *("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "<|end_of_text|>", "<|begin_of_text|>", "<|endoftext|>"),
    *("<|im_start|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|message|>", "<|constrain|>"),
    *("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>"),
    *("<|observation|>", "<|user|>", "<|assistant|>", "<|end_of_role|>", "<|turn>", "<turn|>"),
    *("<start_of_turn>", "<end_of_turn>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "</s>"),
    *("<response>", "</response>"),
)
"""Marks of turns and of answers, which stand alone."""

CHANNEL_HEADERS = ("<|channel|>", "<|start|>")
"""gpt-oss: what begins a header, which `<|message|>` ends: `analysis` is a thought, `to=` a call, else an answer."""
HEADER_END = "<|message|>"
CHANNEL_END = r"<\|end\|>|<\|call\|>|<\|return\|>|(?=<\|(?:start|channel)\|>)"
