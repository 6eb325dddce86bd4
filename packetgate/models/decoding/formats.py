"""One table of the marks that models write around thoughts, calls and tool results."""

import re
from typing import NamedTuple


class Frame(NamedTuple):
    """The marks that begin and end a part of a text."""

    begin: str
    end: str


ANT = "antml:"
NUMBER = r"(?::[\da-f]{6,16})?"
"""Pattern of what Hy 4 appends to its tag names."""
_END_WORDS = {"start": "end", "START": "END", "begin": "end", "prefix": "suffix", "open": "close"}
_OTHER_ENDS = {"<|python_tag|>": "<|eom_id|>", "[TOOL_REQUEST]": "[END_TOOL_REQUEST]"}


def _end_of(begin: str) -> str:
    swapped = re.sub("|".join(_END_WORDS), lambda found: _END_WORDS[found[0]], begin)
    if swapped != begin or begin in _OTHER_ENDS:
        return _OTHER_ENDS.get(begin, swapped)
    if begin.startswith("```"):
        return "```"
    if begin.startswith("<|") and not begin.endswith("|>"):
        return f"<{begin[2:-1]}|>"
    return re.sub(r"^<\||^.", r"\g<0>/", begin)


def _frames(*begins: str) -> tuple[Frame, ...]:
    return tuple(Frame(begin, _end_of(begin)) for begin in begins)


THOUGHTS = _frames(
    "<think>",  # Qwen, DeepSeek, GLM, MiniMax, Granite, Phi, OLMo, Nemotron, Hermes
    *("<thinking>", "<reasoning>", "<thought>", "<seed:think>", "<mm:think>", "<longcat_think>"),
    *("[THINK]", "\u25c1think\u25b7", "<|open|>think<|sep|>"),  # Magistral, Kimi, Kimi K3
    *("<|START_THINKING|>", "<|channel>"),  # Command A, Gemma 4
    *("<|begin_of_thought|>", "<|thought_start|>", "<|inner_prefix|>"),  # OpenThinker, MiniCPM 3, Apertus
)
CALLS = _frames(
    *("<tool_call>", "<tool_calls>"),  # Hermes, Qwen, GLM 4.5, Granite 4; MiniMax M1, xLAM, Jamba, Hunyuan
    *("<function_call>", "<functioncall>", "<function_calls>", f"<{ANT}function_calls>"),  # OLMo 3, Claude
    *("<\uff5cDSML\uff5cfunction_calls>", "<\uff5cDSML\uff5ctool_calls>", "<\uff5cDSML\uff5c calls>"),  # DeepSeek
    *("<minimax:tool_call>", "<seed:tool_call>", "<longcat_tool_call>", "<tool_use>", "<tool_code>"),
    *("<TOOLCALL>", "<|tool_call|>", "<|tool_call>", "<start_function_call>"),  # Nemotron; Granite 3, Phi; Gemma
    *("<|tool_call_start|>", "<|START_ACTION|>", "<|action_start|>"),  # LFM2, Command A, InternLM 2
    *("<|python_tag|>", "<|python_start|>"),  # Llama 3, Llama 4
    *("<|open|>tools<|sep|>", "<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tools_prefix|>"),  # Kimi
    *("<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581begin\uff5c>"),  # DeepSeek V3
    *("<\uff5ctool_calls_begin\uff5c>", "<\uff5ctool_call_begin\uff5c>"),  # Step 3
    *("[TOOL_CALLS]", "[TOOL_REQUEST]", "```tool_code\n", "```tool_call\n"),  # Mistral, LM Studio, Gemma 3
)
BARE = _frames("<tool>", "<function>")
"""Marks of calls that are ordinary words of other texts: they count only before JSON."""
ECHOES = _frames(
    *("<tool_response>", "<|tool_response>", "<start_function_response>", "<function_results>"),
    *("<|header_start|>", "<|start_header_id|>"),  # around the name of who speaks
)
"""Marks around tool results and next turns, which a model writes only when it makes them up."""
OPENINGS = (
    Frame("Thought:", "Final Answer:"),  # ReAct
    Frame("Here is my thought process:", "Here is my response:"),  # Granite 3
    Frame("analysis", "assistantfinal"),  # gpt-oss without its tokens
)
"""Words that open a thought at the very beginning of a text."""
GLUED = OPENINGS[-1]
"""Must be followed by a letter: servers that drop gpt-oss's tokens join the names between them."""

CONTROL = r"<[|\uff5c](?!(?:open|close)\|)(?:[\w\u2581]{1,60}|[^|\uff5c<>\n]{0,100}tool[^|\uff5c<>\n]{0,100})[|\uff5c]>"
"""Pattern of control tokens, of most families and of models that imitate them."""
TOKENS = (
    *("<turn|>", "<|turn>", "<start_of_turn>", "<end_of_turn>", "<seed:eos>", "[e~[", "[|endofturn|]"),
    *("]<]minimax[>[", "<tool_sep>", "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>"),
    *("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
)
"""Other marks of turns and answers."""
WORDS = ("answer", "response", "s", "function")
"""Tags around answers. Within a text, they are part of it."""

CHANNEL_HEADERS = ("<|channel|>", "<|start|>")
"""gpt-oss: what begins a header, which `<|message|>` ends: `analysis` is a thought, `to=` a call, else an answer."""
HEADER_END = "<|message|>"
CHANNEL_END = r"<\|end\|>|<\|call\|>|<\|return\|>|(?=<\|(?:start|channel)\|>)"
