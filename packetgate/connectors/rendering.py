"""Render turns for a terminal. Markup and control characters in content have no effect."""

import io
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, TextIO, cast

from pydantic_core import to_json
from rich.cells import cell_len, chop_cells
from rich.console import Console, Group, JustifyMethod
from rich.table import Table
from rich.text import Text

from packetgate.deciders.commands import COMMAND
from packetgate.state.base import shown_confidence
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json, escaped, printable
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Reflection
from packetgate.tools.text.result_store import ResultStore

MAX_VALUES = 60
"""Longest values of a call's arguments in the line that sums up a turn, in characters."""
PIPED_WIDTH = 100_000
"""Width in characters of output to a pipe."""
_BLANKS = re.compile(r"(?<! ) +$", re.MULTILINE)  # from the first blank on: otherwise, long rows take for ever
PLAIN_WIDTH = 100
"""Width of a question that is not shown at a terminal, so that each folded row begins with a bar."""
_FIRST_BAR, _NEXT_BAR, _FOLDED_BAR = "  │ ", "  ┆ ", "  ↪ "
CELL_STYLES = {"read": "green", "write": "yellow", "execute": "red", "ok": "green", "note": "yellow", "bad": "red"}
"""Styles of risks and verdicts that are a cell of a table."""
Columns = Mapping[str, str | Callable[[Mapping[str, Any]], object]]
"""Columns of a table by heading: the name of a field, or a function of the row."""
_DIFF_STYLES = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red", "\\": "dim", "[": "dim"}
"""Styles of the lines of a unified diff by their beginning; the first match counts."""


def attachments(packet: CognitionPacket, results: ResultStore) -> Text:
    """Return a line with the file of each attachment that tools returned. Blocking."""
    shown = Text()
    for attachment in packet.tool_routing.attachments if packet.tool_routing else ():
        file = results.file(attachment.handle, packet.header.session_id)
        shown.append(printable(f"[{attachment.description}: {file or 'not stored here'}]\n"), style="dim")
    return shown


def trace_table(packet: CognitionPacket) -> Group:
    """Return the packet's trace: stage, decision, confidence and time."""
    rows = (
        (
            entry.step,
            decision(entry),
            shown_confidence(entry.confidence, entry.confidence_source),
            Text(f"{entry.latency_ms:.1f}", style="dim"),
        )
        for entry in packet.reasoning.reflection_log
    )
    shown = table(("stage", "decision", "conf.", "ms"), rows, right=(2, 3))
    total = sum(packet.metrics.latency_ms.values())
    tokens = sum(usage.input_tokens + usage.output_tokens for usage in packet.metrics.token_usage.values())
    thoughts = sum(usage.thought_tokens for usage in packet.metrics.token_usage.values())
    spent = f", {tokens:,} tokens{f' ({thoughts:,} of thoughts)' if thoughts else ''}" if tokens else ""
    foot = f"packet {packet.header.packet_id[:8]}, session {packet.header.session_id}: {total:.0f} ms{spent}"
    messages = dict.fromkeys(error.message for error in packet.metrics.errors)
    return Group(shown, *(safe_text(f"! {message}", "yellow") for message in messages), safe_text(foot, "dim"))


def summary(packet: CognitionPacket, model: str) -> Text:
    """Return a line with the turn's calls, their selector and their review, and the warnings below.

    `model`: the name of the model that selects. Warnings that the answer already gives are left out.
    """
    calls, shown = packet.tool_routing.all_calls if packet.tool_routing else (), Text(style="dim")
    if calls:
        log = packet.reasoning.reflection_log
        choices = [entry for entry in log if entry.step == "select_tool" and entry.decided_by]
        by_rules = all(entry.decided_by == "reflex" or entry.is_fallback for entry in choices[-1:])
        is_typed = all(call.selection_reasoning == COMMAND for call in calls)
        by = "typed by you" if is_typed else f"chosen by {'the rules' if by_rules else model}"
        least = min(calls, key=lambda call: call.review_confidence)
        review = shown_confidence(least.review_confidence, least.review_confidence_source)
        reviewed = f", reviewed {review}" if review and not is_typed else ""
        shown.append(printable(f"{', '.join(map(_call_line, calls))} · {by}{reviewed}\n"))
    return shown + warnings(packet)


def warnings(packet: CognitionPacket) -> Text:
    """Return the turn's warnings, one a line, without those that the answer gives."""
    shown = Text()
    for message in dict.fromkeys(error.message for error in packet.metrics.errors):
        if message not in packet.response.candidate:
            shown.append(printable(f"! {message}\n"), style="yellow")
    return shown


def _call_line(call: ToolCall) -> str:
    values = " ".join(" ".join(str(value).split()) for value in call.params.values())
    short = values if len(values) <= MAX_VALUES else f"{values[: MAX_VALUES - 1]}…"
    is_dry = call.result is not None and call.result.dry_run
    state = "dry run" if is_dry else call.status.replace("_", " ")
    return " ".join(filter(None, [call.tool_name, short, "" if state == "executed" else f"({state})"]))


def decision(entry: Reflection) -> Text:
    """Return a stage's decision in a line, with a note if the rule-based fallback decided."""
    text = Text(printable(" ".join(entry.summary.split()))[:300])
    if entry.is_fallback:
        text.append("  (rule-based fallback)", style="yellow")
    return text


def question(payload: dict[str, Any], width: int = PLAIN_WIDTH) -> Text:
    """Return a pending question with all of its calls in full.

    Every row of untrusted text starts with a bar and is folded to `width` columns. So it cannot look like
    Packetgate's own text.
    """
    shown = Text()
    if payload.get("problem"):
        _quote(shown, str(payload["problem"]), width, lambda _: "yellow")
    if payload.get("kind") == "question":
        _quote(shown, str(payload.get("question", "")), width, lambda _: "bold")
        return shown
    requests = payload.get("action_requests")
    if (small := small_request(payload)) is not None:
        shown.append("May this read run?\n", style="bold")
        _quote(shown, f"{small['name']} {compact_json(small.get('args') or {})}", width)
        _quote(shown, str(small.get("about") or "").partition("\n")[0], width, lambda _: "dim")
        return shown
    for request in requests if isinstance(requests, list) else []:
        shown.append("May this run?\n", style="bold")
        _quote(shown, str(request.get("name")), width, lambda _: "bold cyan")
        for argument in (request.get("args") or {}).items():
            _quote(shown, _argument(argument), width)
        for warning in request.get("warnings") or []:
            _warn(shown, warning, width)
        if request.get("preview"):
            shown.append("What it changes:\n", style="bold")
            _quote(shown, str(request["preview"]), width, _diff_style)
        _quote(shown, str(request.get("about") or request.get("description") or ""), width, lambda _: "dim")
    return shown


def small_request(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Return a question's only call if a short question suffices: a doubtful read that does not reach outside."""
    requests = payload.get("action_requests")
    only = requests[0] if isinstance(requests, list) and len(requests) == 1 and isinstance(requests[0], dict) else {}
    return only if only.get("is_small") and not payload.get("problem") else None


def _argument(argument: tuple[str, Any]) -> str:
    name, value = argument
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{name.replace(chr(10), '␊')} = {text}"


def _warn(shown: Text, warning: dict[str, str], width: int) -> None:
    shown.append("Warning:\n", style="bold red")
    what = f"{warning['argument']}: " if warning.get("argument") else ""
    _quote(shown, f"{what}{warning.get('why', '')}", width, lambda _: "red")
    passage, flagged_part = warning.get("passage") or warning.get("flagged_part", ""), warning.get("flagged_part", "")
    start = len(shown)
    _quote(shown, passage, width)
    if flagged_part:
        _highlight(shown, escaped(flagged_part), start)


def _highlight(shown: Text, flagged_part: str, start: int) -> None:
    rows = f"\n{re.escape(_FOLDED_BAR)}"
    pattern = f"(?:{rows})?".join(re.escape(char) for char in flagged_part)
    for match in re.finditer(pattern, shown.plain[start:]):
        shown.stylize("bold reverse red", start + match.start(), start + match.end())


def _quote(shown: Text, text: str, width: int, style: Callable[[str], str] = lambda _: "") -> None:
    bar = _FIRST_BAR
    for line in escaped(text).expandtabs(4).split("\n") if text else []:
        for piece in _folded(line, max(width - cell_len(bar), 1)):
            shown.append(bar, style="dim").append(f"{piece}\n", style=style(line))
            bar = _FOLDED_BAR
        bar = _NEXT_BAR


def _folded(line: str, width: int) -> Iterator[str]:
    """Yield the rows of a line, which together are the line. A row ends with a blank, if one is in its second half."""
    at = 0
    while True:
        rest = line[at : at + width + 1]
        row = next(filter(None, chop_cells(rest, width)), rest)
        if at + len(row) >= len(line):
            yield row
            return
        row = row[: row.rfind(" ", len(row) // 2) + 1] or row
        yield row
        at += len(row)


def _diff_style(line: str) -> str:
    return next((style for start, style in _DIFF_STYLES.items() if line.startswith(start)), "")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, right: Collection[int] = ()) -> Table:
    """Return a table without borders, and without a header if no column has a heading; `right` are column numbers."""
    made = Table(box=None, pad_edge=False, header_style="dim", show_header=any(headings))
    for at, heading in enumerate(headings):
        justify: JustifyMethod = "right" if at in right else "left"
        made.add_column(heading, style="" if at else "cyan", justify=justify, no_wrap=not at, overflow="fold")
    for row in rows:
        made.add_row(
            *(cell if isinstance(cell, Text) else safe_text(f"{cell}", CELL_STYLES.get(f"{cell}", "")) for cell in row)
        )
    return made


def print_rows(
    rows: Sequence[Mapping[str, Any]], columns: Columns, *, as_json: bool = False, right: Collection[int] = ()
) -> None:
    """Print rows as a table with these columns, or with all of their fields as JSON."""
    if as_json:
        write_json(rows)
        return
    cells = ([row[of] if isinstance(of, str) else of(row) for of in columns.values()] for row in rows)
    console().print(table([*columns], cells, right=right))


def safe_text(text: str, style: str = "") -> Text:
    """Return untrusted text as a cell or a line."""
    return Text(printable(text), style=style)


def say(text: str, style: str = "dim", *, stderr: bool = False) -> None:
    """Print a line that is not part of an answer."""
    console(stderr=stderr).print(safe_text(text, style), soft_wrap=True)


def write_json(value: Any) -> None:
    """Print JSON for scripts; dates, models and dataclasses are written as Pydantic does."""
    sys.stdout.write(to_json(value, indent=2).decode() + "\n")


def console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console without markup; piped output has no colour, and lines are neither cut nor padded.

    A `quiet` console prints nothing.
    """
    stream = sys.stderr if stderr else sys.stdout
    at_terminal = stream.isatty()
    return _Console(
        file=stream if at_terminal else cast("IO[str]", _Unfilled(stream)),
        width=None if at_terminal else PIPED_WIDTH,
        force_terminal=at_terminal,
        markup=False,
        highlight=False,
        emoji=False,
        quiet=quiet,
        soft_wrap=not (stderr or at_terminal),
    )


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - called where the error is handled; Rich would end the process with a status of its own


class _Unfilled(io.TextIOBase):
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_BLANKS.sub("", text))

    def flush(self) -> None:
        self._stream.flush()
