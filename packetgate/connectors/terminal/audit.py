"""`packetgate audit`: what was asked, proposed, reviewed, approved and run, from the journal."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.graph.journal.chain import Chain, Row
from packetgate.graph.journal.opening import journal_in
from packetgate.graph.settings import Settings
from packetgate.state.printing import escaped, shorten
from packetgate.tools.execution.journal import CALL_MARKED, CLAIMED

MAX_CHARS = 300
"""Most characters of an entry."""
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
            continue  # it says no more than what is shown
        if row.packet_id not in {"", turn}:
            turn = row.packet_id
            _print(f"\nsession {row.session_id}, turn {turn[:8]}", "bold")
        _print(f"{row.seq:>6}  {row.at[:19].replace('T', ' ')}  {describe(row)}", _STYLES.get(row.event, ""))
    return 0


async def verify(settings: Settings, head: str | None) -> int:
    """Verify the hash chain of the journal; the exit status is 1 if it is broken."""
    journal, chain, heads = journal_in(settings), Chain(), set[str]()
    breach = None
    async for row in _rows(settings, None):
        breach = chain.breach(row)
        if breach:
            break
        heads.add(row.hash)
    breach = breach or (chain.end(await journal.head()) if _exists(settings) else None)
    if not breach and head and not any(one.startswith(head) for one in heads):
        breach = f"no row has the hash {head}: rows that were there are gone, or all were written anew"
    if breach:
        _print(f"The journal is broken: {breach}.", "red")
        return 1
    erased = f" Of {chain.erased:,} the details were erased, as their session was forgotten." if chain.erased else ""
    _print(f"{chain.head.seq:,} entries, each as it was written and in its place.{erased}", "green")
    if chain.head.seq:
        _print(f"The last one's hash is {chain.head.hash}: kept elsewhere, --head tells with it whether any are gone.")
    return 0


def describe(row: Row) -> str:
    """Return an entry in plain words."""
    if row.detail is None:
        return f"{row.event.replace('_', ' ')} (its detail is erased)"
    return shorten(" ".join(part for part in _parts(row.event, row.recorded.entry.detail) if part), MAX_CHARS)


def _parts(event: str, said: Any) -> Iterator[str]:
    tool = str(said.get("tool_name") or said.get("tool") or "")
    match event:
        case "turn_opened":
            yield f"asked, by {' '.join(filter(None, (said['channel'], said['person'])))}: {said['request']}"
        case "call_proposed":
            yield f"proposed ({said['risk']}): {tool} {json.dumps(said['params'], ensure_ascii=False)}"
        case "call_reviewed":
            yield f"reviewed {tool}, {said['by'] or 'by rule'}: {said['label'].replace('_', ' ')}, {said['score']:.2f};"
            yield f"{str(said.get('status', '')).replace('_', ' ')}. {said['explanation']}"
        case "question_asked":
            yield f"asked the user (question {said['question_id'][:8]}), until {str(said['expires_at'])[:19]}."
            yield str(said.get("problem", ""))
        case "call_started":
            yield f"started {tool}, attempt {said['attempt']}"
        case "call_ended":
            result = said["result"]
            yield f"{said['status']}: {tool}: {result.get('error') or result.get('output') or '(nothing)'}"
        case _ if "params" in said:
            whose = f"by {said['by']}" if said.get("by") else "by the user"
            yield f"{event.removeprefix('call_').replace('_', ' ')} {whose}: {tool}"
            yield f"(question {said['question_id'][:8]}) {said['comment']}" if said["question_id"] else ""
        case _:
            yield f"{event.replace('_', ' ')}: {said.get('detail', '')}"


async def _rows(settings: Settings, session: str | None) -> AsyncIterator[Row]:
    if _exists(settings):
        async for row in journal_in(settings).rows(session):
            yield row


def _exists(settings: Settings) -> bool:
    return settings.database_url is not None or settings.database.is_file()


def _print(line: str, style: str = "") -> None:
    rendering.console().print(Text(escaped(line), style=style), soft_wrap=True)
