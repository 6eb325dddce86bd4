# ruff: noqa: E501, RUF001  outputs are lines of their own length, in many scripts
"""What models of many families write when they call tools: the calls in it, and the words that may be shown of it."""

import json
from dataclasses import dataclass
from typing import Any

Calls = list[tuple[str, dict[str, Any]]]
PARIS: Calls = [("get_weather", {"city": "Paris", "days": 2})]
BOTH: Calls = [*PARIS, ("send_mail", {"to": "ada@example.org", "name": "Ada"})]


@dataclass(frozen=True)
class Output:
    """What a model wrote."""

    id: str
    text: str
    calls: Calls
    shown: str = ""


def call(name: str, arguments: dict[str, Any], key: str = "arguments") -> str:
    return json.dumps({"name": name, key: arguments}, ensure_ascii=False)


ONE, TWO = (call(*one) for one in BOTH)
ARGS, MAIL = (json.dumps(one[1]) for one in BOTH)
ANT, DSML = "antml:", "\uff5cDSML\uff5c"


def deepseek(*names: str) -> str:
    return "<\uff5c" + "\u2581".join(names) + "\uff5c>"


def tags(prefix: str, name: str, **arguments: Any) -> str:
    """Return a call in the tags of Claude, MiniMax M2 or DeepSeek V3.2."""
    typed = {
        key: f' string="{str(isinstance(value, str)).lower()}"' * (prefix == DSML) for key, value in arguments.items()
    }
    inner = "".join(
        f'<{prefix}parameter name="{key}"{typed[key]}>{value}</{prefix}parameter>\n' for key, value in arguments.items()
    )
    return f'<{prefix}invoke name="{name}">\n{inner}</{prefix}invoke>\n'


FAMILIES = [
    Output("Hermes", f"<tool_call>\n{ONE}\n</tool_call>\n<tool_call>\n{TWO}\n</tool_call>", BOTH),
    Output("Qwen", f"<think>\nWeather.\n</think>\n\nI look.\n<tool_call>\n{ONE}\n</tool_call>", PARIS, "I look."),
    Output(
        "Qwen Coder",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
        "</function>\n</tool_call>",
        PARIS,
    ),
    Output("Llama 3", f"<|python_tag|>{call('get_weather', PARIS[0][1], 'parameters')}<|eom_id|>", PARIS),
    Output("Llama 3, function", f"<function=get_weather>{ARGS}</function>", PARIS),
    Output(
        "Llama 3.2, Pythonic",
        "[get_weather(city='Paris', days=2), send_mail(to='ada@example.org', name='Ada')]<|eot_id|>",
        BOTH,
    ),
    Output("Llama 4, Pythonic", '<|python_start|>[get_weather(city="Paris", days=2)]<|python_end|><|eot|>', PARIS),
    Output("Mistral", f"[TOOL_CALLS][{ONE}, {TWO}]</s>", BOTH),
    Output(
        "Magistral",
        f"[THINK]Weather, then mail.[/THINK][TOOL_CALLS]get_weather[ARGS]{ARGS}[TOOL_CALLS]send_mail[ARGS]{MAIL}</s>",
        BOTH,
    ),
    Output(
        "gpt-oss",
        "<|channel|>analysis<|message|>They ask for weather. {}<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.get_weather <|constrain|>json<|message|>{ARGS}<|call|>",
        PARIS,
    ),
    Output(
        "gpt-oss, recipient first",
        f"<|start|>assistant to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{ARGS}<|call|>",
        PARIS,
    ),
    Output(
        "gpt-oss, preamble",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        f"<|start|>assistant<|channel|>commentary to=functions.get_weather json<|message|>{ARGS}<|call|>",
        PARIS,
        "I look.",
    ),
    Output("Gemma 3", '```tool_code\nget_weather(city="Paris", days=2)\n```', PARIS),
    Output("Gemma 3, printed", '```tool_code\nprint(get_weather(city="Paris", days=2))\n```', PARIS),
    Output(
        "FunctionGemma",
        "<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:2}<end_function_call>",
        PARIS,
    ),
    Output(
        "Gemma 4",
        '<|channel>thought\nWeather.<channel|><|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>',
        PARIS,
    ),
    Output(
        "DeepSeek V3",
        deepseek("tool", "calls", "begin")
        + f"{deepseek('tool', 'call', 'begin')}function{deepseek('tool', 'sep')}get_weather\n```json\n{ARGS}\n```"
        + f"{deepseek('tool', 'call', 'end')}\n{deepseek('tool', 'call', 'begin')}function{deepseek('tool', 'sep')}"
        + f"send_mail\n```json\n{MAIL}\n```{deepseek('tool', 'call', 'end')}{deepseek('tool', 'calls', 'end')}",
        BOTH,
    ),
    Output(
        "DeepSeek V3.1",
        f"Weather.</think>{deepseek('tool', 'calls', 'begin')}{deepseek('tool', 'call', 'begin')}get_weather"
        + f"{deepseek('tool', 'sep')}{ARGS}{deepseek('tool', 'call', 'end')}{deepseek('tool', 'calls', 'end')}",
        PARIS,
    ),
    Output(
        "DeepSeek V3.2",
        f"<{DSML}function_calls>\n{tags(DSML, *['get_weather'], city='Paris', days=2)}</{DSML}function_calls>",
        PARIS,
    ),
    Output(
        "Kimi K2",
        f"I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{ARGS}"
        f"<|tool_call_end|><|tool_call_begin|>functions.send_mail:1<|tool_call_argument_begin|>{MAIL}<|tool_call_end|>"
        "<|tool_calls_section_end|>",
        BOTH,
        "I look.",
    ),
    Output(
        "GLM 4.5",
        "<think>Hm.</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
        PARIS,
    ),
    Output("MiniMax M1", f"<think>Hm.</think>\n<tool_calls>\n{ONE}\n{TWO}\n</tool_calls>", BOTH),
    Output(
        "MiniMax M2", f"<minimax:tool_call>\n{tags('', 'get_weather', city='Paris', days=2)}</minimax:tool_call>", PARIS
    ),
    Output("Granite 3", f"<|tool_call|>[{ONE}]", PARIS),
    Output("Granite 4", f"<tool_call>\n{ONE}\n</tool_call>", PARIS),
    Output(
        "Command A",
        "<|START_THINKING|>I look it up.<|END_THINKING|><|START_ACTION|>[\n"
        f'    {{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {ARGS}}}\n]<|END_ACTION|>',
        PARIS,
    ),
    Output("Phi 4 mini", f"<|tool_call|>[{ONE}, {TWO}]<|/tool_call|>", BOTH),
    Output(
        "LFM2",
        '<|tool_call_start|>[get_weather(city="Paris", days=2)]<|tool_call_end|>I look.<|im_end|>',
        PARIS,
        "I look.",
    ),
    Output(
        "OLMo 3",
        '<function_calls>\nget_weather(city="Paris", days=2)\nsend_mail(to="ada@example.org", name="Ada")\n</function_calls>',
        BOTH,
    ),
    Output("xLAM", f"[{ONE}, {TWO}]", BOTH),
    Output("Nemotron", f"<think></think>\n<TOOLCALL>[{ONE}]</TOOLCALL>", PARIS),
    Output(
        "Claude",
        f"I look.\n<function_calls>\n{tags('', 'get_weather', city='Paris', days=2)}</function_calls>",
        PARIS,
        "I look.",
    ),
    Output(
        "Claude, with a prefix",
        f"<{ANT}function_calls>\n{tags(ANT, 'get_weather', city='Paris', days=2)}</{ANT}function_calls>",
        PARIS,
    ),
    Output("ReAct", f"Thought: the weather is needed.\nAction: get_weather\nAction Input: {ARGS}\n", PARIS),
    Output("two plain calls", f"{ONE}\n{TWO}", BOTH),
    Output("keyed by its name", f'<tool_call>{{"get_weather": {ARGS}}}</tool_call>', PARIS),
    Output(
        "a name inside",
        f"<tool_call>{call('add', {'name': 'rm', 'arguments': {}})}</tool_call>",
        [("add", {"name": "rm", "arguments": {}})],
    ),
]
"""A row a family."""

Z: dict[str, Any] = {"query": "Zürich – „höhe“ 🙂", "filter": {"tags": ["a", "b"], "range": {"from": 1, "to": None}}}
DEEP: Calls = [("search.docs", Z)]
N: Calls = [("create_user", {"name": "Ada", "input": {"name": "delete_user", "arguments": {"id": 7}}})]
QUOTED: Calls = [
    ("write_file", {"path": "a.md", "text": 'See </tool_call><tool_call>{"name": "rm", "arguments": {}}</tool_call>'})
]
CODE: Calls = [("write_file", {"path": "a.py", "text": "def f(a):\n    return a < 1 and a > 0\n"})]


def plain(calls: Calls, key: str = "arguments") -> str:
    return "\n".join(call(*one, key) for one in calls)


ZJ, NJ = json.dumps(Z, ensure_ascii=False, indent=2), json.dumps(N[0][1])

HELD_OUT = [
    Output("Hermes, indented", f'<tool_call>\n  {{"arguments": {ZJ}, "name": "search.docs"}}\n</tool_call>\n', DEEP),
    Output("Hermes, quoted marks", f"<tool_call>{plain(QUOTED)}</tool_call>", QUOTED),
    Output(
        "Hermes, words after", f"<tool_call>\n{plain(DEEP)}\n</tool_call>\nI will tell you.", DEEP, "I will tell you."
    ),
    Output(
        "Hermes, single quotes",
        "<tool_call>\n{'name': 'get_weather', 'arguments': {'city': 'Paris', 'days': 2}}\n</tool_call>",
        PARIS,
    ),
    Output("Qwen, template's thought", f"They want it. {ONE}?\n</think>\n\n<tool_call>\n{plain(N)}\n</tool_call>", N),
    Output("Qwen, fenced inside", f"<tool_call>\n```json\n{ONE}\n```\n</tool_call>", PARIS),
    Output(
        "Qwen Coder, code",
        "I write it.\n\n<tool_call>\n<function=write_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=text>\n"
        "def f(a):\n    return a < 1 and a > 0\n\n</parameter>\n</function>\n</tool_call>",
        CODE,
        "I write it.",
    ),
    Output(
        "Qwen Coder, nested and two",
        f"<tool_call>\n<function=search.docs>\n<parameter=query>\n{Z['query']}\n</parameter>\n<parameter=filter>\n"
        f"{json.dumps(Z['filter'])}\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=ping>\n</function>\n</tool_call>",
        [*DEEP, ("ping", {})],
    ),
    Output(
        "Llama 3, two", f"<|python_tag|>{plain(PARIS, 'parameters')}; {plain(N, 'parameters')}<|eom_id|>", [*PARIS, *N]
    ),
    Output("Llama 3, typed", f'{{"type": "function", "name": "get_weather", "parameters": {ARGS}}}<|eot_id|>', PARIS),
    Output(
        "Llama 3.2, nested",
        "[search(filter={'tags': ['a', 'b'], 'deep': True}, limit=-1.5)]",
        [("search", {"filter": {"tags": ["a", "b"], "deep": True}, "limit": -1.5})],
    ),
    Output(
        "Llama 4, quoted",
        "<|python_start|>[say(text='it\\'s (a, b=1)]', to=None)]<|python_end|>",
        [("say", {"text": "it's (a, b=1)]", "to": None})],
    ),
    Output("Llama 4, words before", 'I look it up.\n\n[get_weather(city="Paris", days=2)]', PARIS, "I look it up."),
    Output(
        "Mistral, spaced, ids",
        f'[TOOL_CALLS] [{{"name": "get_weather", "arguments": {ARGS}, "id": "aB3dE5gH9"}}]',
        PARIS,
    ),
    Output("Mistral, quoted marks", f"[TOOL_CALLS]write_file[ARGS]{json.dumps(QUOTED[0][1])}", QUOTED),
    Output("Mistral, words before", f"I look.[TOOL_CALLS]search.docs[ARGS]{ZJ}", DEEP, "I look."),
    Output("Magistral, ids", f"[THINK]Maybe {ONE}[/THINK]\n[TOOL_CALLS]create_user[CALL_ID]x9Y[ARGS]{NJ}</s>", N),
    Output("gpt-oss, no constraint", f"<|channel|>commentary to=functions.create_user<|message|>{NJ}<|call|>", N),
    Output("gpt-oss, in analysis", f"<|channel|>analysis to=functions.search.docs code<|message|>{ZJ}<|call|>", DEEP),
    Output("gpt-oss, opened", f" to=functions.get_weather<|channel|>commentary json<|message|>{ARGS}", PARIS),
    Output(
        "gpt-oss, answer",
        "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It rains.<|return|>",
        [],
        "It rains.",
    ),
    Output("Gemma 3, JSON", f"```json\n{ONE}\n```", PARIS),
    Output(
        "Gemma 3, two",
        "```tool_code\nget_weather(city='Paris', days=2)\nsend_mail(to='ada@example.org', name='Ada')\n```",
        BOTH,
    ),
    Output(
        "FunctionGemma, two",
        "<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:2}<end_function_call><start_function_call>call:ping{}<end_function_call>",
        [*PARIS, ("ping", {})],
    ),
    Output(
        "FunctionGemma, marks in text",
        '<start_function_call>call:say{text:<escape>a, b:{c} "d" call:x{}<escape>}<end_function_call>',
        [("say", {"text": 'a, b:{c} "d" call:x{}'})],
    ),
    Output(
        "Gemma 4, nested",
        '<|tool_call>call:find{at:{lat:1.5,on:true},tags:[<|"|>a<|"|>,<|"|>ö, }<|"|>]}<tool_call|><turn|>',
        [("find", {"at": {"lat": 1.5, "on": True}, "tags": ["a", "ö, }"]})],
    ),
    Output(
        "Gemma 4, words",
        "<|channel>thought\nHm {a}.\n<channel|>I look.<|tool_call>call:ping{}<tool_call|>",
        [("ping", {})],
        "I look.",
    ),
    Output(
        "DeepSeek V3, indented",
        f"{deepseek('tool', 'calls', 'begin')}{deepseek('tool', 'call', 'begin')}function{deepseek('tool', 'sep')}search.docs\n```json\n{ZJ}\n```{deepseek('tool', 'call', 'end')}",
        DEEP,
    ),
    Output(
        "DeepSeek V3.1, words, inner name",
        f"I add her.{deepseek('tool', 'calls', 'begin')}{deepseek('tool', 'call', 'begin')}create_user{deepseek('tool', 'sep')}{NJ}{deepseek('tool', 'call', 'end')}{deepseek('tool', 'calls', 'end')}",
        N,
        "I add her.",
    ),
    Output(
        "DeepSeek V3.2, two",
        f"I look.\n\n<{DSML}function_calls>\n{tags(DSML, 'get_weather', city='Paris', days=2)}{tags(DSML, 'tag', n='007')}</{DSML}function_calls>",
        [*PARIS, ("tag", {"n": "007"})],
        "I look.",
    ),
    Output(
        "DeepSeek V3.2, text that looks like a number",
        f"Hm.</think>\n\n<{DSML}function_calls>\n{tags(DSML, 'tag', n='7')}</{DSML}function_calls>",
        [("tag", {"n": "7"})],
    ),
    Output(
        "Kimi K2, inner name",
        f"<|tool_calls_section_begin|>\n<|tool_call_begin|> functions.create_user:3 <|tool_call_argument_begin|> {NJ} <|tool_call_end|>\n<|tool_calls_section_end|>",
        N,
    ),
    Output(
        "Kimi, thought",
        f"\u25c1think\u25b7Maybe {ONE}\u25c1/think\u25b7<|tool_calls_section_begin|><|tool_call_begin|>functions.search.docs:0<|tool_call_argument_begin|>{ZJ}<|tool_call_end|><|tool_calls_section_end|>",
        DEEP,
    ),
    Output(
        "GLM 4.5, nested, no line breaks",
        f"<tool_call>search.docs<arg_key>query</arg_key><arg_value>{Z['query']}</arg_value><arg_key>filter</arg_key><arg_value>{json.dumps(Z['filter'])}</arg_value></tool_call>",
        DEEP,
    ),
    Output(
        "GLM 4.5, nothing taken, two",
        "Fine.\n<tool_call>ping\n</tool_call>\n<tool_call>pong\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        [("ping", {}), ("pong", {"n": 1})],
        "Fine.",
    ),
    Output("MiniMax M1, inner name", f"<tool_calls>\n{plain(N)}\n</tool_calls>\nDone soon.", N, "Done soon."),
    Output(
        "MiniMax M2, two",
        f"Hm.\n</think>\n\nI do.\n<minimax:tool_call>\n{tags('', 'write_file', path='a.py', text=CODE[0][1]['text'])}{tags('', 'ping')}</minimax:tool_call>",
        [("write_file", CODE[0][1]), ("ping", {})],
        "I do.",
    ),
    Output(
        "Granite 3, thoughts",
        f"Here is my thought process: it is asked.\nHere is my response: <|tool_call|>[{plain(DEEP)}]",
        DEEP,
    ),
    Output("Granite 3, tag", f"<tool_call>[{ONE}, {TWO}]", BOTH),
    Output(
        "Command A, two",
        f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "create_user", "parameters": {NJ}}}, {{"tool_call_id": "1", "tool_name": "ping", "parameters": {{}}}}]<|END_ACTION|>',
        [*N, ("ping", {})],
    ),
    Output(
        "Command A, answer",
        "<|START_THINKING|>Easy.<|END_THINKING|><|START_RESPONSE|>It rains.<|END_RESPONSE|>",
        [],
        "It rains.",
    ),
    Output(
        "Command R",
        f'Action: ```json\n[\n    {{\n        "tool_name": "get_weather",\n        "parameters": {ARGS}\n    }}\n]```',
        PARIS,
    ),
    Output("Phi 4, functools", f"functools[{ONE}]", PARIS),
    Output("Phi 4, thought", f"<think>Hm [{TWO}]</think><|tool_call|>[{ONE}]<|/tool_call|>", PARIS),
    Output(
        "LFM2, nested, two",
        '<|tool_call_start|>[find(at={"lat": 1.5}, on=True), ping()]<|tool_call_end|>',
        [("find", {"at": {"lat": 1.5}, "on": True}), ("ping", {})],
    ),
    Output("LFM2, JSON", f"<|tool_call_start|>[{plain(DEEP)}]<|tool_call_end|>", DEEP),
    Output(
        "OLMo 3, thought",
        "<think>ping(a=1)?</think>I look.\n<function_calls>\nget_weather(days=2, city='Paris')\n</function_calls>",
        PARIS,
        "I look.",
    ),
    Output(
        "OLMo 3, triple quotes",
        '<function_calls>\nsay(text="""a\nb""")\n</function_calls>',
        [("say", {"text": "a\nb"})],
    ),
    Output("xLAM, thought", f"<think>Hm.</think>[{plain(N)}]", N),
    Output(
        "xLAM, object",
        json.dumps(
            {
                "thought": "Hm",
                "tool_calls": [{"name": "ping", "arguments": {}}, *[{"name": n, "arguments": a} for n, a in N]],
            }
        ),
        [("ping", {}), *N],
    ),
    Output("Nemotron, spaced, two", f"<TOOLCALL> [ {plain(N)} , {ONE} ] </TOOLCALL>\n", [*N, *PARIS]),
    Output(
        "Claude, code",
        f"<function_calls>\n{tags('', 'write_file', path='a.py', text=CODE[0][1]['text'])}</function_calls>\nSo much.",
        CODE,
        "So much.",
    ),
    Output("Claude, alone", f"<thinking>Hm.</thinking>\n{tags('', 'ping')}", [("ping", {})]),
    Output("Claude, tool_use", '<tool_use>{"name": "ping", "input": {"n": 1}}</tool_use>', [("ping", {"n": 1})]),
    Output(
        "ReAct, inner name",
        f"Thought: add her\nAction: create_user\nAction Input: {NJ}\nObservation: done {ONE}\nThought: I know.",
        N,
    ),
    Output("ReAct, fenced", f"Thought: hm\nAction: search.docs\nAction Input:\n```json\n{ZJ}\n```", DEEP),
    Output("ReAct, answer", "Thought: I know now.\nFinal Answer: It rains.", [], "It rains."),
    Output(
        "wire",
        json.dumps(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
                    for n, a in [*PARIS, *N]
                ],
            }
        ),
        [*PARIS, *N],
    ),
    Output("plain, words between", f"{ONE} and then {TWO}", BOTH),
    Output("plain, three", f"```json\n{ONE}\n{TWO}\n{plain(N)}\n```", [*BOTH, *N]),
]
"""Written before it was seen how they are read."""
