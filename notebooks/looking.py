"""Output of the notebooks: plain tables, the stages of a packet, and the changes of a stage.

They have two digits, and no ids and times: stored outputs are the same in every run.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from IPython.display import HTML
from pydantic import BaseModel

from packetgate import CognitionPacket
from packetgate.state.base import shown_confidence

LONGEST = 300
NEW_EACH_TIME = frozenset(
    """packet_id session_id parent_packet_id call_id created_at at latency_ms execution_time_ms
    subject verdict_digest definition_digest""".split()
)
"""Ids, times and digests, which differ in every run."""
DURATION = re.compile(r" in [\d.,]+ m?s\b")
ID = re.compile(r"(?<=[:_])(?:[0-9a-f]{8}){1,4}\b")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> HTML:
    """Return a table whose cells are plain text, aligned to the left."""
    style = "text-align: left; vertical-align: top; white-space: pre-wrap"

    def row(tag: str, cells: Sequence[object]) -> str:
        shown = (
            f'<{tag} style="{style}">{escape(_short(cell))}</{tag}>' for cell in cells
        )
        return f"<tr>{''.join(shown)}</tr>"

    return HTML(
        f"<table>{row('th', header)}{''.join(row('td', cells) for cells in rows)}</table>"
    )


def journey(packet: CognitionPacket) -> HTML:
    """Return a table of the packet's stages and their decisions."""
    return table(
        ("stage", "decided by", "decision", "confidence"),
        [
            (
                entry.step,
                entry.decided_by or "rule",
                entry.summary,
                shown_confidence(entry.confidence, entry.confidence_source),
            )
            for entry in packet.reasoning.reflection_log
        ],
    )


def changes(before: CognitionPacket, after: CognitionPacket) -> HTML:
    """Return a table of the changed fields; of lists, only the new items."""
    found = []
    for section in CognitionPacket.model_fields:
        old, new = (
            dict(_fields(getattr(before, section))),
            dict(_fields(getattr(after, section))),
        )
        found += [
            (section, field, _new(old.get(field), new[field]))
            for field in new
            if new[field] != old.get(field)
        ]
    return table(("section", "field", "now"), found)


def _fields(section: Any) -> Iterator[tuple[str, Any]]:
    """Yield a section's set fields as JSON, and messages as type and text."""
    if isinstance(section, BaseModel):
        yield from _quiet(
            section.model_dump(mode="json", exclude_defaults=True)
        ).items()
    elif section:
        yield "", [f"{message.type}: {message.text}" for message in section]


def _quiet(value: Any) -> Any:
    """Return JSON without ids, times and empty values, with numbers rounded to two places."""
    if isinstance(value, dict):
        kept = {
            key: _quiet(held) for key, held in value.items() if key not in NEW_EACH_TIME
        }
        return {
            key: held for key, held in kept.items() if held not in ({}, [], "", None)
        }
    if isinstance(value, list):
        return [_quiet(held) for held in value]
    return round(value, 2) if isinstance(value, float) else value


def _new(old: Any, new: Any) -> Any:
    """Return the new items of a list, or the changed fields of its objects; else the value."""
    if not isinstance(old, list) or not isinstance(new, list):
        return new
    if new[: len(old)] == old:
        return new[len(old) :]
    both = zip(old, new, strict=False)
    return [
        {key: held for key, held in now.items() if held != was.get(key)}
        for was, now in both
    ]


def _short(cell: object) -> str:
    """Return a cell's text, with a line for each item of a list, cut if it is long."""
    text = (
        "\n".join(_plain(entry) for entry in cell)
        if isinstance(cell, list)
        else _plain(cell)
    )
    text = ID.sub("…", DURATION.sub("", text))
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(maxsplit=1)[0]} …"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{key}: {held if isinstance(held, str) else json.dumps(held)}"
            for key, held in value.items()
        )
    return f"{value:.2f}" if isinstance(value, float) else str(value)
