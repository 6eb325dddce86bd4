"""`packetgate audit`: print and export the journal."""

import json
import sys
from typing import Annotated, Any

import typer

from packetgate.connectors.options import settings_from
from packetgate.connectors.rendering import say
from packetgate.gate.journal import CALL_MARKED, CLAIMED, QUESTION_OWNED, QUESTION_SHOWN
from packetgate.graph.journal import JournalRow, open_journal
from packetgate.state.errors import ConfigError
from packetgate.state.printing import escaped, shorten

_MAX_CHARS = 300
"""Maximum characters of a printed entry."""
_HIDDEN = {CLAIMED, CALL_MARKED, QUESTION_OWNED, QUESTION_SHOWN}
_ENDS = {f"call_{status}" for status in ("executed", "failed", "unknown")}


async def audit(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this session's entries.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Export the entries as JSON lines, as stored.")] = False,
) -> int:
    """Show the journal: requests, proposed calls, approvals and results.

    The journal contains all turns of the configured database.
    """
    settings = settings_from()
    if not settings.has_database:
        return 0
    turn, ended, row = "", set[str](), None
    async for row in open_journal(settings).rows(session):
        if as_json:
            sys.stdout.write(json.dumps(row._asdict(), ensure_ascii=False) + "\n")
            continue
        if row.event == "call_ended":
            ended.add(row.call_id)
        elif row.event in _HIDDEN or (row.event in _ENDS and row.call_id in ended):
            continue  # other rows show the same
        if row.packet_id not in {"", turn}:
            turn = row.packet_id
            say(f"\nsession {row.session_id}, turn {turn[:8]}", "bold")
        say(f"{row.seq:>6}  {row.at[:19].replace('T', ' ')}  {escaped(_describe(row))}", "")
    if session and row is None:
        say(f"The journal has no entry of the session {session!r}.", stderr=True)
    return 0


def _describe(row: JournalRow) -> str:
    if row.detail is None:
        return f"{_spaced(row.event)} (details deleted with the session)"
    try:
        return shorten(_text(row, row.recorded_entry.entry.detail), _MAX_CHARS)
    except (ConfigError, LookupError, TypeError, AttributeError, ValueError):
        return f"{_spaced(row.event)} (damaged row: `packetgate audit --json` prints it as stored)"


def _text(row: JournalRow, detail: Any) -> str:
    tool = str(detail.get("tool_name") or detail.get("tool") or "")
    match row.event:
        case "turn_opened":
            return f"asked, by {' '.join(filter(None, (detail['channel'], detail['person'])))}: {detail['request']}"
        case "call_proposed":
            return f"proposed ({detail['risk']}): {tool} {json.dumps(detail['params'], ensure_ascii=False)}"
        case "call_reviewed":
            label, status = _spaced(detail["label"]), _spaced(str(detail.get("status", "")))
            by = detail["by"] or "by rule"
            return f"reviewed {tool}, {by}: {label}, {detail['score']:.2f}; {status}. {detail['explanation']}"
        case "question_asked":
            until, problem = str(detail["expires_at"])[:19], detail.get("problem", "")
            return f"asked the user (question {detail['question_id'][:8]}), until {until}. {problem}"
        case "call_started":
            return f"started {tool}, attempt {detail['attempt']}, call {row.call_id[:8]}"
        case "call_read":
            asked = f"for: {detail['request']}" if detail["request"] else ""
            by = " ".join(filter(None, (detail["channel"], detail["person"])))
            params = json.dumps(detail["params"], ensure_ascii=False)
            result = detail["result"]
            end = result.get("error") or result.get("output") or "(nothing)"
            return f"read, by {by}: {tool} {params}: {detail['status']}: {end} {asked}"
        case "call_ended":
            result = detail["result"]
            return f"{detail['status']}: {tool}: {result.get('error') or result.get('output') or '(nothing)'}"
        case "answer_recorded":
            return f"answer to question {row.call_id[:8]} recorded, for the process that asked"
        case _ if "params" in detail:
            by = detail.get("by") or "the user"
            question = f" (question {detail['question_id'][:8]}) {detail['comment']}" if detail["question_id"] else ""
            return f"{_spaced(row.event.removeprefix('call_'))} by {by}: {tool}{question}"
    return f"{_spaced(row.event)}: {detail.get('detail', '')}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")
