"""`packetgate audit`: print, export and verify the journal."""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.graph.journal.chain import JournalChain, JournalRow
from packetgate.graph.journal.database import open_journal
from packetgate.graph.settings import Settings
from packetgate.state.printing import escaped, shorten
from packetgate.tools.execution.journal import CALL_MARKED, CLAIMED

_MAX_CHARS = 300
"""Maximum characters of a printed entry."""
_ENDS = {f"call_{status}" for status in ("executed", "failed", "unknown")}
_STYLES = {"turn_opened": "cyan", "call_started": "yellow", "call_ended": "green"}


async def show_audit(settings: Settings, session: str | None, *, as_json: bool) -> int:
    """Print the journal, or that of one session, oldest first; as JSON lines it is complete."""
    turn, ended = "", set[str]()
    async for row in _rows(settings, session):
        if as_json:
            sys.stdout.write(json.dumps(row._asdict(), ensure_ascii=False) + "\n")
            continue
        if row.event == "call_ended":
            ended.add(row.call_id)
        elif row.event in {CLAIMED, CALL_MARKED} or (row.event in _ENDS and row.call_id in ended):
            continue  # repeats what other rows show
        if row.packet_id not in {"", turn}:
            turn = row.packet_id
            _print(f"\nsession {row.session_id}, turn {turn[:8]}", "bold")
        _print(f"{row.seq:>6}  {row.at[:19].replace('T', ' ')}  {_describe(row)}", _STYLES.get(row.event, ""))
    return 0


async def verify(settings: Settings, head: str | None) -> int:
    """Verify the hash chain of the journal; the exit status is 1 if it is broken."""
    journal, chain, breach, has_head = open_journal(settings), JournalChain(), None, head is None
    async for row in _rows(settings, None):
        breach = chain.breach(row)
        if breach:
            break
        has_head = has_head or row.hash.startswith(head or "")
    if not breach and _exists(settings):
        breach = chain.end(await journal.head())
    if not breach and not has_head:
        breach = f"no row has the hash {head}: rows were deleted, or the whole journal was rewritten"
    if breach:
        _print(f"The journal is broken: {breach}.", "red")
        return 1
    erased = f" The details of {chain.erased:,} were erased with their session." if chain.erased else ""
    _print(f"{chain.head.seq:,} entries, unchanged and complete.{erased}", "green")
    if chain.head.seq:
        _print(
            f"Last hash: {chain.head.hash}. Store it elsewhere: --verify --head HASH then also finds deleted last rows."
        )
    return 0


def _describe(row: JournalRow) -> str:
    """Return an entry in plain words."""
    if row.detail is None:
        return f"{_words(row.event)} (its detail is erased)"
    return shorten(_text(row.event, row.recorded.entry.detail), _MAX_CHARS)


def _text(event: str, detail: Any) -> str:
    tool = str(detail.get("tool_name") or detail.get("tool") or "")
    match event:
        case "turn_opened":
            return f"asked, by {' '.join(filter(None, (detail['channel'], detail['person'])))}: {detail['request']}"
        case "call_proposed":
            return f"proposed ({detail['risk']}): {tool} {json.dumps(detail['params'], ensure_ascii=False)}"
        case "call_reviewed":
            label, status = _words(detail["label"]), _words(str(detail.get("status", "")))
            by = detail["by"] or "by rule"
            return f"reviewed {tool}, {by}: {label}, {detail['score']:.2f}; {status}. {detail['explanation']}"
        case "question_asked":
            until, problem = str(detail["expires_at"])[:19], detail.get("problem", "")
            return f"asked the user (question {detail['question_id'][:8]}), until {until}. {problem}"
        case "call_started":
            return f"started {tool}, attempt {detail['attempt']}"
        case "call_ended":
            result = detail["result"]
            return f"{detail['status']}: {tool}: {result.get('error') or result.get('output') or '(nothing)'}"
        case _ if "params" in detail:
            by = detail.get("by") or "the user"
            question = f" (question {detail['question_id'][:8]}) {detail['comment']}" if detail["question_id"] else ""
            return f"{_words(event.removeprefix('call_'))} by {by}: {tool}{question}"
    return f"{_words(event)}: {detail.get('detail', '')}"


def _words(name: str) -> str:
    return name.replace("_", " ")


async def _rows(settings: Settings, session: str | None) -> AsyncIterator[JournalRow]:
    if _exists(settings):
        async for row in open_journal(settings).rows(session):
            yield row


def _exists(settings: Settings) -> bool:
    return settings.database_url is not None or settings.database.is_file()


def _print(line: str, style: str = "") -> None:
    rendering.console().print(Text(escaped(line), style=style), soft_wrap=True)
