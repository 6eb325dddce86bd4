"""Run conversations without a model: corrections, follow-ups and small talk."""

import asyncio
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packetgate import create_router, reads
from packetgate.router import Turn

CORRECTION, FOLLOW_UP = "correction in words fills the wrong parameter", "follow-up loses its file, runs unasked"
TALK = {
    "small talk answered as a tool error",
    "small talk answered with Hello",
    "question about itself",
}
JUDGED = {CORRECTION, FOLLOW_UP, *TALK}
"""Kinds of rows whose outcome depends on the calls and the answer."""
_PAIR = re.compile(r"(\w+)=(?:\"([^\"]*)\"|(\S+))")
_NOTE = re.compile(r"\s*\([^)]*\)$")


async def ends_well(row: Mapping[str, Any], project: Mapping[str, str]) -> bool:
    """Return whether the last message of a row has the expected outcome in a project with these files."""
    with tempfile.TemporaryDirectory() as folder:
        await asyncio.to_thread(_write, Path(folder), project)
        async with create_router(root=folder, settings={"allow_write_tools": True}) as router:
            said = [row["input"]] if isinstance(row["input"], str) else row["input"]
            turns = [await router.ainvoke(_NOTE.sub("", words), thread="t") for words in said]
    if row["kind"] in TALK:
        return "No tool matches" not in turns[-1].answer and not turns[-1].answer.startswith("Hello!")
    if row["kind"] == FOLLOW_UP:
        return [call.get("path") for call in _last_calls(turns[-1])] == ["drafts/letter.txt"]
    wanted = {name: quoted or bare for name, quoted, bare in _PAIR.findall(row["right"])}
    return any(wanted.items() <= call.items() for call in _last_calls(turns[-1]))


async def answers_and_repeats(opening: str, then: str) -> bool:
    """Return whether a turn during an open question answers its request and repeats the question."""

    def cancel_order(order: str) -> str:
        """Cancel an order."""
        return f"{order} is cancelled"

    @reads
    def late_orders() -> str:
        """List the orders that are late."""
        return "B-20 and C-3"

    async with create_router(tools=[cancel_order, late_orders], settings={"allow_write_tools": True}) as router:
        await router.ainvoke(opening, thread="t")
        turn = await router.ainvoke(then, thread="t")
    return "B-20" in turn.answer and turn.question is not None and turn.question.calls[0][0].endswith("cancel_order")


def _write(folder: Path, project: Mapping[str, str]) -> None:
    for path, text in project.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def _last_calls(turn: Turn) -> list[dict[str, Any]]:
    """Return the arguments of the calls in the turn's question, or without a question, of the calls that ran."""
    if turn.question is not None:
        return [params for _, params in turn.question.calls]
    routing = turn.packet.tool_routing
    return [dict(call.params) for call in (routing.all_calls if routing else ()) if call.result is not None]
