"""Tool calls in the formats of many model families, with the expected calls and visible text."""

import json
from dataclasses import dataclass
from typing import Any

Calls = list[tuple[str, dict[str, Any]]]
NOT_READ: Calls = []
"""Calls in Python syntax or without quotes, which are only removed from answers."""
PARIS: Calls = [("get_weather", {"city": "Paris", "days": 2})]
BOTH: Calls = [*PARIS, ("send_mail", {"to": "ada@example.org", "name": "Ada"})]


@dataclass(frozen=True)
class Output:
    """A model's output with its expected calls and text."""

    id: str
    text: str
    calls: Calls
    shown: str = ""


def call(name: str, arguments: dict[str, Any], key: str = "arguments") -> str:
    return json.dumps({"name": name, key: arguments}, ensure_ascii=False)


ONE, TWO = (call(*one) for one in BOTH)
ARGS, MAIL = (json.dumps(one[1]) for one in BOTH)


def deepseek(*names: str) -> str:
    return "<\uff5c" + "\u2581".join(names) + "\uff5c>"


N: Calls = [("create_user", {"name": "Ada", "input": {"name": "delete_user", "arguments": {"id": 7}}})]
QUOTED: Calls = [
    ("write_file", {"path": "a.md", "text": 'See </tool_call><tool_call>{"name": "rm", "arguments": {}}</tool_call>'})
]
CODE: Calls = [("write_file", {"path": "a.py", "text": "def f(a):\n    return a < 1 and a > 0\n"})]


def plain(calls: Calls, key: str = "arguments") -> str:
    return "\n".join(call(*one, key) for one in calls)


OUTPUTS = [
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
        NOT_READ,
    ),
    Output("Llama 4, Pythonic", '<|python_start|>[get_weather(city="Paris", days=2)]<|python_end|><|eot|>', NOT_READ),
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
        "gpt-oss, preamble",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        f"<|start|>assistant<|channel|>commentary to=functions.get_weather json<|message|>{ARGS}<|call|>",
        PARIS,
        "I look.",
    ),
    Output("Gemma 3", '```tool_code\nget_weather(city="Paris", days=2)\n```', NOT_READ),
    Output(
        "FunctionGemma",
        "<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:2}<end_function_call>",
        NOT_READ,
    ),
    Output(
        "Gemma 4",
        '<|channel>thought\nWeather.<channel|><|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>',
        NOT_READ,
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
    Output("Granite 3", f"<|tool_call|>[{ONE}]", PARIS),
    Output("Phi 4 mini", f"<|tool_call|>[{ONE}, {TWO}]<|/tool_call|>", BOTH),
    Output(
        "LFM2",
        '<|tool_call_start|>[get_weather(city="Paris", days=2)]<|tool_call_end|>I look.<|im_end|>',
        NOT_READ,
        "I look.",
    ),
    Output("two plain calls", f"{ONE}\n{TWO}", BOTH),
    Output(
        "a name inside",
        f"<tool_call>{call('add', {'name': 'rm', 'arguments': {}})}</tool_call>",
        [("add", {"name": "rm", "arguments": {}})],
    ),
    Output("Hermes, quoted marks", f"<tool_call>{plain(QUOTED)}</tool_call>", QUOTED),
    Output("Qwen, template's thought", f"They want it. {ONE}?\n</think>\n\n<tool_call>\n{plain(N)}\n</tool_call>", N),
    Output(
        "Qwen Coder, code",
        "I write it.\n\n<tool_call>\n<function=write_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=text>\n"
        "def f(a):\n    return a < 1 and a > 0\n\n</parameter>\n</function>\n</tool_call>",
        CODE,
        "I write it.",
    ),
    Output(
        "Llama 3, two", f"<|python_tag|>{plain(PARIS, 'parameters')}; {plain(N, 'parameters')}<|eom_id|>", [*PARIS, *N]
    ),
    Output("Mistral, quoted marks", f"[TOOL_CALLS]write_file[ARGS]{json.dumps(QUOTED[0][1])}", QUOTED),
    Output(
        "gpt-oss, answer",
        "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It rains.<|return|>",
        [],
        "It rains.",
    ),
    Output("Phi 4, thought", f"<think>Hm [{TWO}]</think><|tool_call|>[{ONE}]<|/tool_call|>", PARIS),
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
]
