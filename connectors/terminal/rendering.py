"""How a turn looks in a terminal. Everything shown is data: no markup is read from it, no control character passes."""

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from state.base import ConfidenceSource
from state.packet import CognitionPacket
from state.sections import Reflection


def printable(text: str) -> str:
    """Return text without the control characters that could steer a terminal."""
    return "".join(char if char in "\n\t" or char.isprintable() or char == " " else "\ufffd" for char in text)


def answer(packet: CognitionPacket) -> Text:
    """Return the answer."""
    return Text(printable(packet.response.candidate))


def journey(packet: CognitionPacket) -> Group:
    """Return the packet's journey: stage, decision, confidence (`~`: merely stated by the model), time."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=False)
    table.add_column("stage", style="cyan", no_wrap=True)
    table.add_column("decision", overflow="fold", ratio=1)
    table.add_column("conf.", justify="right")
    table.add_column("ms", justify="right", style="dim")
    for entry in packet.reasoning.reflection_log:
        table.add_row(entry.step, decision(entry), _confidence(entry), f"{entry.latency_ms:.1f}")
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


def question(payload: dict[str, object]) -> Group:
    """Return a pending question with the calls it is about."""
    lines: list[Text | Padding] = []
    if payload.get("problem"):
        lines.append(Text(printable(str(payload["problem"])), style="yellow"))
    if payload.get("kind") == "question":
        lines.append(Text(printable(str(payload.get("question", ""))), style="bold"))
        return Group(*lines)
    requests = payload.get("action_requests")
    for request in requests if isinstance(requests, list) else []:
        lines.append(Text(f"May this run?  {printable(str(request['name']))}", style="bold"))
        for name, value in request["args"].items():
            lines.append(Padding(Text(printable(f"{name} = {value}")), (0, 0, 0, 2)))
        lines.append(Padding(Text(printable(str(request["description"])), style="dim"), (0, 0, 0, 2)))
    return Group(*lines)


def console(*, stderr: bool = False) -> Console:
    """Return a console that reads no markup, and prints plainly when piped."""
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=not stderr)


def _confidence(entry: Reflection) -> str:
    """Return the confidence; `~` marks one that the model merely stated."""
    mark = "~" if entry.confidence_source is ConfidenceSource.STATED else ""
    return "" if entry.confidence is None else f"{mark}{entry.confidence:.2f}"
