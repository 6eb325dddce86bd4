"""What `packetgate doctor` finds, and how it looks in a terminal."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.state.printing import printable

STYLE = {"ok": "green", "note": "yellow", "bad": "red"}
WIDTHS = (4, 14)
"""Least widths of the first columns, so that tables printed one after the other line up."""


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    verdict: Literal["ok", "note", "bad"]
    what: str
    how: str
    status: int = 1
    """What the command ends with, if this is bad."""


def show(findings: Sequence[Finding]) -> None:
    """Print the findings, a row each."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for width in WIDTHS:
        table.add_column(no_wrap=True, min_width=width)
    table.add_column(overflow="fold", ratio=1)
    for one in findings:
        table.add_row(Text(one.verdict, style=STYLE[one.verdict]), one.what, Text(printable(one.how)))
    rendering.console().print(table)


def show_json(findings: Sequence[Finding]) -> None:
    """Print the findings as JSON."""
    found = [{"verdict": one.verdict, "what": one.what.strip(), "how": one.how} for one in findings]
    sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def exit_status(findings: Sequence[Finding]) -> int:
    """Return the exit status that the worst of the findings makes; 0 if none is bad."""
    return max((one.status for one in findings if one.verdict == "bad"), default=0)
