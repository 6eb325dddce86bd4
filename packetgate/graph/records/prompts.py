"""Keeping what was said to models and by them in the graph's store, for some days: whole prompts, users' words in them.

What is kept is what this machine sent. It stays in the user's own database, and holds no header and no key.
"""

from datetime import datetime

from langgraph.store.base import BaseStore
from pydantic import ConfigDict, ValidationError

from packetgate.models.endpoint import Role
from packetgate.models.requests import ModelRequest
from packetgate.state.base import Section, new_id
from packetgate.tools.usage.store import day_of, namespace, prune

VERSION = 1
"""Raised when a field changes its meaning or goes. A new field does not raise it: readers pass over it."""
ROOT = ("packetgate", "prompts")
KEPT = 2_000
"""Stages' exchanges, at some ten kilobytes each."""
_ALL = 100_000


class StagePrompts(Section):
    """What one visit of a stage said to its model, and the model to it."""

    model_config = ConfigDict(extra="ignore")

    version: int = VERSION
    session_id: str
    packet_id: str
    stage: str
    role: Role
    at: datetime
    """When the first request was sent, in UTC."""
    exchanges: tuple[ModelRequest, ...]


async def save_prompts(store: BaseStore, prompts: StagePrompts) -> None:
    """Store what a stage said beside what others have. A store that embeds what it keeps leaves it out."""
    value = {**prompts.model_dump(mode="json"), "day": day_of(prompts.at)}
    await store.aput(namespace(ROOT, prompts.session_id, prompts.packet_id), new_id(), value, index=False)


async def read_prompts(store: BaseStore, session_id: str, packet_id: str) -> tuple[StagePrompts, ...]:
    """Return what a turn's stages said, in order; what only a newer Packetgate can read is passed over."""
    items = await store.asearch(namespace(ROOT, session_id, packet_id), limit=_ALL)
    found = [read for item in items if (read := _read(item.value)) is not None]
    return tuple(sorted(found, key=lambda one: one.at))


async def prune_prompts(store: BaseStore, days: int) -> None:
    """Delete what is older than `days`, and what is more than a store should hold."""
    await prune(store, days, KEPT, ROOT)


def _read(value: dict[str, object]) -> StagePrompts | None:
    version = value.get("version")
    if isinstance(version, int) and version > VERSION:
        return None
    try:
        return StagePrompts.model_validate(value)
    except ValidationError:
        return None
