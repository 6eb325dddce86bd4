"""The formats of today's models, as a table: what opens and ends a thought, a call, and what a tool returned.

What is written between the marks of a call stands in `bodies`: any body may stand in any frame. A format that is not
here is not guessed at.
"""

from typing import NamedTuple


class Frame(NamedTuple):
    """What opens a part of a text, and what ends it."""

    begin: str
    end: str


class Led(NamedTuple):
    """What opens a call without a mark that always does: a pattern, which must fit as a whole."""

    begin: str
    end: str
    """A pattern of what ends the call; where it never comes, the call goes on to the end of the text."""


class Opening(NamedTuple):
    """Words that open a thought at the very beginning of a text, and what ends it."""

    begin: str
    end: str
    glued: bool = False
    """Whether a letter must follow at once: so do servers that leave out gpt-oss's tokens join the names between."""


ANT, DSML, SPACED, STEP = PREFIXES = "antml:", "\uff5cDSML\uff5c", "\uff5cDSML\uff5c ", "steptml:"
"""What Claude, DeepSeek V3.2 and V4, V4.1, and Step 3 put before the names of their tags."""
MINIMAX = "]<]minimax[>["
"""What MiniMax M3 puts before every tag."""
NUMBER = r":[\da-f]{6,16}"
"""What Hy 4 puts behind the names of its tags: each checkpoint its own."""

THOUGHTS = (
    Frame("<think>", "</think>"),  # Qwen, DeepSeek, GLM, MiniMax, Granite, Phi, OLMo, Nemotron, Hermes
    Frame("<thinking>", "</thinking>"),  # Claude
    Frame("<reasoning>", "</reasoning>"),
    Frame("<thought>", "</thought>"),
    Frame("<seed:think>", "</seed:think>"),
    Frame("<mm:think>", "</mm:think>"),  # MiniMax M3
    Frame("[THINK]", "[/THINK]"),  # Magistral
    Frame("\u25c1think\u25b7", "\u25c1/think\u25b7"),  # Kimi
    Frame("<|open|>think<|sep|>", "<|close|>think<|sep|>"),  # Kimi K3
    Frame("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    Frame("<|channel>", "<channel|>"),  # Gemma 4
    Frame("<longcat_think>", "</longcat_think>"),
    Frame("<|begin_of_thought|>", "<|end_of_thought|>"),  # OpenThinker, Sky-T1
    Frame("<|thought_start|>", "<|thought_end|>"),  # MiniCPM 3
    Frame("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
)

CALLS = (
    Frame("<tool_call>", "</tool_call>"),  # Hermes, Qwen, Qwen Coder, GLM 4.5, Granite 4, Hy 3
    Frame("<tool_calls>", "</tool_calls>"),  # MiniMax M1, xLAM, Jamba, Hunyuan
    Frame("<function_call>", "</function_call>"),
    Frame("<functioncall>", "</functioncall>"),
    Frame("<function_calls>", "</function_calls>"),  # Claude, OLMo 3
    Frame(f"<{ANT}function_calls>", f"</{ANT}function_calls>"),
    Frame(f"<{DSML}function_calls>", f"</{DSML}function_calls>"),  # DeepSeek V3.2
    Frame(f"<{DSML}tool_calls>", f"</{DSML}tool_calls>"),  # DeepSeek V4
    Frame(f"<{SPACED}calls>", f"</{SPACED}calls>"),  # DeepSeek V4.1
    Frame("<minimax:tool_call>", "</minimax:tool_call>"),  # MiniMax M2
    Frame(f"{MINIMAX}<tool_call>", f"{MINIMAX}</tool_call>"),  # MiniMax M3
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
    Frame("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),  # Kimi K3
    Frame("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),  # Kimi K2
    Frame("<|tool_call_begin|>", "<|tool_call_end|>"),
    Frame("<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"),  # DeepSeek V3
    Frame("<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"),
    Frame("[TOOL_CALLS]", "[/TOOL_CALLS]"),  # Mistral
    Frame("<\uff5ctool_calls_begin\uff5c>", "<\uff5ctool_calls_end\uff5c>"),  # Step 3
    Frame("<\uff5ctool_call_begin\uff5c>", "<\uff5ctool_call_end\uff5c>"),
    Frame("<longcat_tool_call>", "</longcat_tool_call>"),
    Frame("<|action_start|><|plugin|>", "<|action_end|>"),  # InternLM 2
    Frame("<|tools_prefix|>", "<|tools_suffix|>"),  # Apertus
    Frame("\u273fFUNCTION\u273f", "\u273fRESULT\u273f"),  # Qwen Agent
    Frame("<tool_code>", "</tool_code>"),  # Gemini
    Frame("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),  # LM Studio
    Frame("```tool_code\n", "```"),  # Gemma 3
    Frame("```tool_call\n", "```"),
)

BARE = (Frame("<tool>", "</tool>"), Frame("<function>", "</function>"))
"""Calls whose marks are words of many other texts: they count before JSON only."""

ECHOES = (
    Frame("<tool_response>", "</tool_response>"),
    Frame("<|tool_response>", "<tool_response|>"),
    Frame("<start_function_response>", "<end_function_response>"),
    Frame("<function_results>", "</function_results>"),
)
"""Around what a tool returned: only a model that makes it up writes them."""

HEADERS = (
    Frame("<|header_start|>", "<|header_end|>"),  # Llama 4
    Frame("<|start_header_id|>", "<|end_header_id|>"),  # Llama 3
)
"""Around the name of who speaks."""

OPENINGS = (
    Opening("Thought:", "Final Answer:"),  # ReAct
    Opening("Here is my thought process:", "Here is my response:"),  # Granite 3
    Opening("analysis", "assistantfinal", glued=True),  # gpt-oss without its tokens
)

_JSON_CALL = r'(?:\[\s*)?\{\s*"(?:action|function|name|tool|tool_name)"'
LED = (
    Led(r"Action:[ \t]*[\w.:/@-]{1,200}[ \t]*\n\s*Action Input:", "Final Answer:"),  # ReAct, LangChain
    Led(rf"Action:\s*```(?:json)?\s*{_JSON_CALL}", "```"),  # LangChain, Command R
    Led(rf"Action:\s*{_JSON_CALL}", "\n\n"),
    *(Led(rf"{one.begin}\s*{_JSON_CALL}", one.end) for one in BARE),
    Led(r">>>(?!all\n)[\w.-]{1,200}\n\{", "(?=>>>)"),  # Functionary 3
    Led(r">>>all\n", ""),  # its words for the user
)

TOKENS = (
    *("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "<|end_of_text|>", "<|begin_of_text|>", "<|endoftext|>"),
    *("<|im_start|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|message|>", "<|constrain|>"),
    *("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>"),
    *("<|observation|>", "<|user|>", "<|assistant|>", "<|end_of_role|>", "<|turn>", "<turn|>"),
    *("<start_of_turn>", "<end_of_turn>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "</s>"),
    *("<response>", "</response>", "<answer>", "</answer>", "[e~[", "[|endofturn|]", "\u273fRETURN\u273f:"),
    *("<seed:eos>", "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", MINIMAX, "<|end_of_msg|>"),
    *("<|begin_of_solution|>", "<|end_of_solution|>"),
    *("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
)
"""Marks of turns and of answers, which stand alone."""

WORDS = ("answer", "function", "response", "s")
"""Tags of these names are words of other texts too: an end whose beginning is part of the text is so as well."""

CHANNEL_HEADERS = ("<|channel|>", "<|start|>")
"""gpt-oss: what begins a header, which `<|message|>` ends: `analysis` is a thought, `to=` a call, else an answer."""
HEADER_END = "<|message|>"
CHANNEL_END = r"<\|end\|>|<\|call\|>|<\|return\|>|(?=<\|(?:start|channel)\|>)"
