"""How a turn looks in a terminal. Everything shown is data: no markup is read from it, no control character passes."""

import io
import re
import sys
from typing import IO, Any, TextIO, cast

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from state.base import ConfidenceSource, shown_confidence
from state.packet import CognitionPacket
from state.printing import printable
from state.sections import Reflection

PIPED_WIDTH = 100_000
"""Characters: nobody reads a pipe by the width of a screen."""
_BLANKS = re.compile(r" +$", re.MULTILINE)
MAX_LINES = 200
LONG = 200
"""Characters from which on a value is left to its preview, if there is one."""
RISK_STYLE = {"read": "green", "write": "yellow", "execute": "red"}
_DIFF_STYLES = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red", "\\": "dim", "[": "dim"}
"""How a line of a unified diff looks, by how it begins; the first that fits."""


def answer(packet: CognitionPacket) -> Text:
    """Return the answer."""
    return Text(printable(packet.response.candidate))


def journey(packet: CognitionPacket) -> Group:
    """Return the packet's journey: stage, decision, how sure it was, time."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=False)
    table.add_column("stage", style="cyan", no_wrap=True)
    table.add_column("decision", overflow="fold", ratio=1)
    table.add_column("conf.", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", style="dim")
    for entry in packet.reasoning.reflection_log:
        table.add_row(
            entry.step,
            decision(entry),
            shown_confidence(entry.confidence, entry.confidence_source),
            f"{entry.latency_ms:.1f}",
        )
    total = sum(packet.metrics.latency_ms.values())
    tokens = sum(usage.input_tokens + usage.output_tokens for usage in packet.metrics.token_usage.values())
    spent = f", {tokens:,} tokens" if tokens else ""
    stated = any(entry.confidence_source is ConfidenceSource.STATED for entry in packet.reasoning.reflection_log)
    legend = "; ~ a number that the model states" if stated else ""
    foot = Text(
        f"packet {packet.header.packet_id[:8]}, session {packet.header.session_id}: {total:.0f} ms{spent}{legend}",
        style="dim",
    )
    problems = [Text(f"! {printable(error.message)}", style="yellow") for error in packet.metrics.errors]
    return Group(table, *problems, foot)


def decision(entry: Reflection) -> Text:
    """Return a stage's decision in a line, saying so when reflexes stood in for a model."""
    text = Text(printable(" ".join(entry.summary.split()))[:300])
    if entry.is_fallback:
        text.append("  (reflexes stood in for the model)", style="yellow")
    return text


def question(payload: dict[str, Any]) -> Group:
    """Return a pending question with the calls it is about."""
    lines: list[Text | Padding] = []
    if payload.get("problem"):
        lines.append(Text(printable(str(payload["problem"])), style="yellow"))
    if payload.get("kind") == "question":
        lines.append(Text(printable(str(payload.get("question", ""))), style="bold"))
        return Group(*lines)
    requests = payload.get("action_requests")
    for request in requests if isinstance(requests, list) else []:
        lines += _request(request)
    return Group(*lines)


def console(*, stderr: bool = False) -> Console:
    """Return a console that reads no markup, and prints plainly when piped: no colour, no line cut or filled up."""
    stream = sys.stderr if stderr else sys.stdout
    at_terminal = stream.isatty()
    return _Console(
        file=stream if at_terminal else cast("IO[str]", _Unfilled(stream)),
        width=None if at_terminal else PIPED_WIDTH,
        force_terminal=at_terminal,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=not stderr,
    )


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - called where the error is handled; Rich would end the process with a status of its own


class _Unfilled(io.TextIOBase):
    """Writes to a stream without the blanks with which a table fills its lines up."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_BLANKS.sub("", text))

    def flush(self) -> None:
        self._stream.flush()


def _request(request: dict[str, Any]) -> list[Text | Padding]:
    preview = str(request.get("preview") or "")
    return [
        Text(f"May this run?  {printable(str(request.get('name')))}", style="bold"),
        *(_indented(_value(name, str(value), preview)) for name, value in (request.get("args") or {}).items()),
        *([_indented(_diff(preview))] if preview else []),
        _indented(Text(printable(str(request.get("description", ""))), style="dim")),
    ]


def _indented(text: Text) -> Padding:
    """Return text within a margin, folded there: nothing that is decided about may be cut off at the edge."""
    text.no_wrap, text.overflow = False, "fold"
    return Padding(text, (0, 0, 0, 2))


def _value(name: str, value: str, preview: str) -> Text:
    if preview and ("\n" in value.rstrip("\n") or len(value) > LONG):
        return Text(printable(f"{name} = {len(value):,} characters: see what they change"))
    return Text("\n").join(_bounded(printable(f"{name} = {value}").split("\n")))


def _diff(preview: str) -> Text:
    text = Text()
    for line in _bounded(printable(preview).split("\n")):
        style = next((style for start, style in _DIFF_STYLES.items() if line.plain.startswith(start)), "")
        text.append(f"{line.plain}\n", style=style or line.style)
    text.rstrip()
    return text


def _bounded(lines: list[str]) -> list[Text]:
    more = len(lines) - MAX_LINES
    cut = [Text(f"… {more:,} more lines", style="yellow")] if more > 0 else []
    return [*(Text(line) for line in lines[:MAX_LINES]), *cut]
