# ruff: noqa: E501  outputs are lines of their own length, in many scripts
"""What the newest families write, by their published templates; and 60 outputs written without sight of the code.

Calls of Kimi K3 and MiniMax M3 are read by their servers alone.

The latter stand in `blind_outputs.json` as they were written. When they were first read, all 40 with calls were, none
was refused, one was misread, and three showed what no user should see.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.native_outputs import ARGS, DSML, PARIS, Calls, Output, tags

SPACED, M3 = f"{DSML} ", "]<]minimax[>["
PING: Calls = [("ping", {})]
SENT: Calls = [*PARIS, ("send_mail", {"to": 'a &amp; <b>"', "cc": ["x"], "at": None})]


def open_tag(name: str, **attributes: str) -> str:
    return "<|open|>" + name + "".join(f' {key}="{value}"' for key, value in attributes.items()) + "<|sep|>"


def close_tag(name: str) -> str:
    return f"<|close|>{name}<|sep|>"


def kimi(*calls: str) -> str:
    return open_tag("tools") + "".join(calls) + close_tag("tools")


def kimi_call(name: str, arguments: dict[str, Any]) -> str:
    kinds = {str: "string", int: "number", list: "array", type(None): "null"}
    inner = "".join(
        open_tag("argument", key=key, type=kinds[type(value)])
        + (value if isinstance(value, str) else json.dumps(value))
        + close_tag("argument")
        for key, value in arguments.items()
    )
    return open_tag("call", tool=name, index="1") + inner + close_tag("call")


HY = (
    "<think>Hm.</think>I look.<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Paris"
    "</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>ping<tool_sep>\n</tool_call>\n</tool_calls>"
)


NEWEST = [
    Output(
        "DeepSeek V4",
        f"Hm.</think>I look.\n\n<{DSML}tool_calls>\n{tags(DSML, 'get_weather', city='Paris', days=2)}</{DSML}tool_calls>",
        PARIS,
        "I look.",
    ),
    Output(
        "DeepSeek V4.1",
        f'Hm.</think>I look.\n\n<{SPACED}calls>\n<{SPACED}invoke name="get_weather">\n<{SPACED}parameter name="city" string="true">Paris</{SPACED}parameter>\n<{SPACED}parameter name="days" string="false">2</{SPACED}parameter>\n</{SPACED}invoke>\n</{SPACED}calls><\uff5cend\u2581of\u2581sentence\uff5c>',
        PARIS,
        "I look.",
    ),
    Output(
        "DeepSeek V4.1, JSON",
        f'<{SPACED}calls>\n<{SPACED}invoke name="get_weather">{ARGS}</{SPACED}invoke>\n</{SPACED}calls>',
        PARIS,
    ),
    Output(
        "Kimi K3, opened",
        f"They ask.{close_tag('think')}{open_tag('response')}I look.{close_tag('response')}{kimi(*(kimi_call(*one) for one in SENT))}{close_tag('message')}<|end_of_msg|>",
        [],
        "I look.",
    ),
    Output(
        "Kimi K3, JSON",
        f"{open_tag('think')}Hm.{close_tag('think')}{open_tag('response')}{close_tag('response')}"
        + kimi(open_tag("call", tool="get_weather", index="1") + open_tag("json", type="object") + ARGS + close_tag("json") + close_tag("call")),
        [],
    ),
    Output(
        "Kimi K3, answer",
        f"Hm.{close_tag('think')}{open_tag('response')}It rains.{close_tag('response')}{close_tag('message')}<|end_of_msg|>",
        [],
        "It rains.",
    ),
    Output(
        "GLM 4.7",
        "They ask.</think>I look.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value><arg_key>days</arg_key><arg_value>2</arg_value></tool_call><tool_call>ping</tool_call>",
        [*PARIS, *PING],
        "I look.",
    ),
    Output(
        "MiniMax M3",
        f'I look.\n{M3}<tool_call>\n{M3}<invoke name="get_weather">{M3}<city>Paris{M3}</city>{M3}<days>2{M3}</days>{M3}</invoke>\n{M3}</tool_call>',
        [],
        "I look.",
    ),
    Output(
        "MiniMax M3, nested, two",
        f'<mm:think>Hm.</mm:think>{M3}<tool_call>\n{M3}<invoke name="find">{M3}<at>{M3}<lat>1.5{M3}</lat>{M3}<tags>{M3}<item>a{M3}</item>{M3}<item><b> & c{M3}</item>{M3}</tags>{M3}</at>{M3}</invoke>\n{M3}<invoke name="ping">{M3}</invoke>\n{M3}</tool_call>',
        [],
    ),
    Output("MiniMax M3, a mark astray", f"It rains.{M3}", [], "It rains."),
    Output(
        "Granite 4.2",
        "Hm.\n</think>\nI look.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
        PARIS,
        "I look.",
    ),
    Output("Hy 3", HY, [*PARIS, *PING], "I look."),
    Output("Hy 4", HY.replace("<tool_sep>", "").replace(">", ":6124c78e>"), [*PARIS, *PING], "I look."),
    Output("Hy 4, opened", "Hm.</think:6124c78e>It rains.", [], "It rains."),
]  # fmt: skip


@dataclass(frozen=True)
class Blind(Output):
    """An output, and what of it must not be shown."""

    opened: bool = False
    """Whether the chat template opened its thought."""
    hidden: tuple[str, ...] = ()


def _blind(number: int, row: dict[str, Any]) -> Blind:
    return Blind(
        f"{number}, {row['family']}: {row['note']}",
        row["output"],
        [(call["name"], call["arguments"]) for call in row["calls"]],
        row["text"] or "",
        row["template_opened"],
        tuple(row["must_not_show"]),
    )


BLIND = [
    _blind(*row) for row in enumerate(json.loads(Path(__file__).with_name("blind_outputs.json").read_text("utf-8")))
]
