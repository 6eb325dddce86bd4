"""Load the verdicts of two readers on calls that ran. Neither reader saw the score, the label or the other verdict.

A label states one way to make a call; a reader decides whether the call fulfils the request. `readings.json` stores the
verdicts by a hash of case and calls.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from benchmarks.real_models.playing import Played
from benchmarks.selection.cases import Case
from packetgate.state.printing import compact_json

READINGS = Path(__file__).with_name("readings.json")


class Reading(BaseModel):
    """The verdicts on the calls of a case."""

    model_config = ConfigDict(frozen=True)

    set: str
    verdicts: tuple[Literal["right", "wrong"], Literal["right", "wrong"]]
    reason: str = ""
    """The reason for the verdicts, if a reader disagrees with the label."""

    @property
    def is_right(self) -> bool:
        """Whether both readers judge the calls as right."""
        return self.verdicts == ("right", "right")


def reading_of(row: Played) -> Reading | None:
    """Return the verdicts on a case's calls; None if there are none."""
    return _readings().get(_key(row))


def to_read(cases: Mapping[str, Case], rows: Iterable[Played]) -> Iterator[dict[str, Any]]:
    """Yield the data for the readers, for each case whose call ran and has no verdict yet."""
    for row in rows:
        if any(row.passed) and reading_of(row) is None:
            shown = cases[row.id].model_dump(include={"query", "tools"})
            yield {"key": _key(row), "set": row.set, **shown, "calls": [call.model_dump() for call in row.calls]}


def _key(row: Played) -> str:
    calls = compact_json([call.model_dump() for call in row.calls])
    return sha256(f"{row.set}\n{row.id}\n{calls}".encode()).hexdigest()[:16]


@cache
def _readings() -> Mapping[str, Reading]:
    return TypeAdapter(dict[str, Reading]).validate_json(READINGS.read_bytes())
