"""What came of a model's evaluation, in the graph's store, under what the model is known by."""

import hashlib
from functools import cache

from langgraph.store.base import BaseStore
from pydantic import ValidationError

from packetgate.deciders.protocols import KnownAs
from packetgate.tools.evaluation.passport import Passport, Played, PlayedCall
from packetgate.tools.usage.calibration import Calibration, read_history
from packetgate.tools.usage.store import delete

ROOT = ("packetgate", "evaluations")
_KEY = "passport"
_ALL = 10_000


@cache
def version() -> str:
    """Return the version of the cases, and of what confidences are weighed with: other curves say nothing of these."""
    from packetgate.deciders.language.evidence import FITTED  # here, because it takes numpy
    from packetgate.tools.evaluation.cases import FILE

    form = f"{[*PlayedCall.model_fields, *Played.model_fields]}"
    return hashlib.sha256(FILE.read_bytes() + FITTED.read_bytes() + form.encode()).hexdigest()[:16]


async def read_played(store: BaseStore, known_as: str) -> dict[str, Played]:
    """Return what came of cases so far, by their names."""
    items = await store.asearch((*ROOT, known_as), filter={"version": version()}, limit=_ALL)
    return {item.key: Played.model_validate(item.value) for item in items if item.key != _KEY}


async def read_passport(store: BaseStore, known_as: str) -> Passport | None:
    """Return a model's passport, of whatever version; None where it has none that can be read."""
    item = await store.aget((*ROOT, known_as), _KEY)
    try:
        return Passport.model_validate(item.value) if item else None
    except ValidationError:  # of another Packetgate
        return None


async def keep(store: BaseStore, known_as: str, one: Played | Passport) -> None:
    """Keep what came of a case, or a passport in place of the last."""
    key = _KEY if isinstance(one, Passport) else one.case
    await store.aput((*ROOT, known_as), key, one.model_dump(mode="json"), index=False)


async def forget_evaluation(store: BaseStore, known_as: str) -> None:
    """Delete all that came of a model's evaluation."""
    await delete(store, await store.asearch((*ROOT, known_as), limit=_ALL))


async def calibration_for(store: BaseStore, known_as: KnownAs | None) -> Calibration:
    """Return the curves that hold for a model: of the user's answers, and where those are few, of its passport."""
    name = await known_as() if known_as else None
    kept = await read_passport(store, name) if name else None
    curves = kept.curves if kept and kept.version == version() else {}
    return Calibration(curves=curves | (await read_history(store)).current.curves)
