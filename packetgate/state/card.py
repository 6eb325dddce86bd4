"""A packet as HTML for notebooks: stages, calls and answer as escaped text."""

from collections.abc import Iterable
from html import escape
from typing import Any
from unicodedata import category

from packetgate.state.base import shown_confidence
from packetgate.state.printing import compact_json
from packetgate.state.routing import ToolCall

MAX_CHARS = 1_000
MAX_ROWS = 50


def packet_card(packet: Any) -> str:
    """Return a `CognitionPacket` as HTML without scripts, links or styles. Long values are shortened."""
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    journey = [
        (
            entry.step,
            "reflex (fallback)" if entry.is_fallback else entry.decided_by or "rule",
            entry.summary,
            shown_confidence(entry.confidence, entry.confidence_source),
            f"{entry.latency_ms:.1f} ms",
        )
        for entry in packet.reasoning.reflection_log
    ]
    problems = [(error.stage, error.message) for error in packet.metrics.errors]
    parts = [
        f"<h4>{_text(packet.content.original_prompt or 'no request yet')}</h4>",
        f"<p>packet {_text(packet.header.packet_id[:8])}, {_text(packet.status.state.replace('_', ' '))}</p>",
        _table("Journey", ("stage", "decided by", "decision", "confidence", "time"), journey),
        _table("Calls", ("tool", "risk", "status", "arguments", "review", "result"), map(_call, calls)),
        f"<h5>Answer</h5><pre>{_text(packet.response.candidate)}</pre>" if packet.response.candidate else "",
        _table("Problems", ("stage", "problem"), problems),
    ]
    return f"<article>{''.join(parts)}</article>"


def _call(call: ToolCall) -> tuple[str, ...]:
    arguments = [
        f"{name}={value if isinstance(value, str) else compact_json(value)}{_origin(call, name)}"
        for name, value in call.params.items()
    ]
    result = (call.result.error or call.result.output) if call.result else ""
    status = f"{call.status.replace('_', ' ')}{' (dry run)' if call.result and call.result.dry_run else ''}"
    review = f"{shown_confidence(call.review_confidence, call.review_confidence_source)} {call.review_reasoning}"
    return call.tool_name, call.risk, status, "\n".join(arguments), review, result


def _origin(call: ToolCall, name: str) -> str:
    origin = call.provenance.get(name)
    return f" (from {origin.source}{f': {origin.why}' if origin.is_flagged else ''})" if origin else ""


def _table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    shown = [*rows][:MAX_ROWS]
    if not shown:
        return ""
    head = "".join(f"<th>{name}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in shown)
    return f"<h5>{title}</h5><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(text: Any) -> str:
    """Return shortened, escaped text; invisible characters become their code points."""
    shown = str(text)
    shown = shown if len(shown) <= MAX_CHARS else f"{shown[:MAX_CHARS]}…"
    return escape("".join(map(_visible, shown)))


def _visible(char: str) -> str:
    hidden = category(char) in {"Cc", "Cf", "Cs"} and char not in "\n\t\u200c\u200d"  # joiners: used in scripts, emoji
    return f"⟨U+{ord(char):04X}⟩" if hidden else char
