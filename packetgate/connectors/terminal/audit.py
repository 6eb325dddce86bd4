"""`packetgate audit`: print, export and verify the journal."""

import json
import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any

import typer
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.options import settings_from
from packetgate.gate.journal import CALL_MARKED, CLAIMED
from packetgate.graph.journal import JournalChain, JournalRow, open_journal
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError
from packetgate.state.printing import escaped, shorten

_MAX_CHARS = 300
"""Maximum characters of a printed entry."""
_ENDS = {f"call_{status}" for status in ("executed", "failed", "unknown")}
_STYLES = {"turn_opened": "cyan", "call_started": "yellow", "call_ended": "green"}


async def audit(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this session's entries.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Export the entries as JSON lines, as stored.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that no entry of the journal was changed or deleted.")
    ] = False,
    head: Annotated[
        str | None, typer.Option("--head", help="With --verify: the hash of an earlier entry that must exist.")
    ] = None,
) -> int:
    """Show the journal: who asked, what was proposed, approved and run, with what result.

    The journal holds all turns of this machine's database. With --verify, exit status 1 means that the journal was
    changed.
    """
    if (session is not None or as_json) if verify else head is not None:
        raise typer.BadParameter("--verify takes --head, and neither --session nor --json", param_hint="--verify")
    settings = settings_from(local=True)
    if verify:
        return await _verify(settings, head)
    turn, ended = "", set[str]()
    async for row in _rows(settings, session):
        if as_json:
            sys.stdout.write(json.dumps(row._asdict(), ensure_ascii=False) + "\n")
            continue
        if row.event == "call_ended":
            ended.add(row.call_id)
        elif row.event in {CLAIMED, CALL_MARKED} or (row.event in _ENDS and row.call_id in ended):
            continue  # other rows show the same
        if row.packet_id not in {"", turn}:
            turn = row.packet_id
            _print(f"\nsession {row.session_id}, turn {turn[:8]}", "bold")
        _print(f"{row.seq:>6}  {row.at[:19].replace('T', ' ')}  {_describe(row)}", _STYLES.get(row.event, ""))
    return 0


async def _verify(settings: Settings, head: str | None) -> int:
    journal, chain, breach, has_head = open_journal(settings), JournalChain(), None, head is None
    async for row in _rows(settings, None):
        breach = chain.check_row(row)
        if breach:
            break
        has_head = has_head or row.hash.startswith(head or "")
        if head and row.hash.startswith(head):
            chain.replaced_triggers = None
    if not breach and _has_journal(settings):
        breach = chain.check_end(await journal.head())
    if not breach and not has_head:
        breach = f"no row has the hash {head}: rows were deleted, or the whole journal was rewritten"
    if not breach and chain.replaced_triggers:
        row = chain.replaced_triggers
        breach = (
            f"before row {row.seq} ({row.at[:19]}), triggers that protect it were missing or changed "
            f"({row.recorded_entry.entry.detail['detail']}). If you know the reason, such as a restored backup, "
            f"confirm the row with --head {row.hash[:12]}"
        )
    if breach:
        _print(f"The journal is broken: {breach}.", "red")
        return 1
    erased = f" {chain.erased:,} of them have no details, because their session was deleted." if chain.erased else ""
    _print(f"{chain.head.seq:,} entries, unchanged and complete.{erased}", "green")
    if chain.head.seq:
        _print(
            f"Last hash: {chain.head.hash}. Store it elsewhere: --verify --head HASH also detects deleted last rows."
        )
    return 0


def _describe(row: JournalRow) -> str:
    if row.detail is None:
        return f"{_spaced(row.event)} (details deleted with the session)"
    try:
        return shorten(_text(row, row.recorded_entry.entry.detail), _MAX_CHARS)
    except (ConfigError, LookupError, TypeError, AttributeError, ValueError):
        return f"{_spaced(row.event)} (damaged row: `packetgate audit --verify` checks all rows)"


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
        case "call_ended":
            result = detail["result"]
            return f"{detail['status']}: {tool}: {result.get('error') or result.get('output') or '(nothing)'}"
        case _ if "params" in detail:
            by = detail.get("by") or "the user"
            question = f" (question {detail['question_id'][:8]}) {detail['comment']}" if detail["question_id"] else ""
            return f"{_spaced(row.event.removeprefix('call_'))} by {by}: {tool}{question}"
    return f"{_spaced(row.event)}: {detail.get('detail', '')}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


async def _rows(settings: Settings, session: str | None) -> AsyncIterator[JournalRow]:
    if _has_journal(settings):
        async for row in open_journal(settings).rows(session):
            yield row


def _has_journal(settings: Settings) -> bool:
    return settings.database_url is not None or settings.database.exists()


def _print(line: str, style: str = "") -> None:
    rendering.console().print(Text(escaped(line), style=style), soft_wrap=True)
