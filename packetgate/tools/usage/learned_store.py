"""Keeping what confirmed calls teach in LangGraph's store, for each user apart."""

from time import monotonic
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore
from pydantic import ValidationError

from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Header
from packetgate.tools.usage.learning import ConfirmedUse, Learned, confirmed_uses
from packetgate.tools.usage.store import day_of, delete, namespace

ROOT = ("packetgate", "learned")
MOST_USES = 1_000
"""Uses of a user that are read, the newest."""
FRESH_S = 60.0
"""How long what was read counts: another process may have learned more."""
_ALL = 1_000_000

_READ: WeakKeyDictionary[BaseStore, dict[str, tuple[float, Learned]]] = WeakKeyDictionary()
"""By user, what was read of a store, and when."""


def learner(header: Header) -> str:
    """Return whose calls teach whom: the person's who asked, by their channel, or where none is named the session's."""
    return f"{header.origin}:{header.person}" if header.person else f"session:{header.session_id}"


async def learn(store: BaseStore, packet: CognitionPacket) -> None:
    """Keep what a turn teaches, once."""
    for number, use in enumerate(confirmed_uses(packet)):
        await keep_use(store, packet.header, f"{packet.header.packet_id}-{number}", use)


async def keep_use(store: BaseStore, header: Header, key: str, use: ConfirmedUse) -> None:
    """Keep one use; one of the same key is replaced."""
    who = learner(header)
    value = {**use.model_dump(mode="json"), "day": day_of(use.at)}
    await store.aput(namespace(ROOT, who), key, value, index=False)
    _READ.get(store, {}).pop(who, None)


async def read_learned(store: BaseStore, header: Header) -> Learned:
    """Return what is known of the user whose turn it is."""
    who, read = learner(header), _READ.setdefault(store, {})
    at, learned = read.get(who, (-FRESH_S, Learned(())))
    if monotonic() - at >= FRESH_S:
        items = await store.asearch(namespace(ROOT, who), limit=_ALL)
        uses = [use for use in (_use(item.value) for item in items) if use is not None]
        learned = Learned(sorted(uses, key=lambda use: use.at)[-MOST_USES:])
        for old in [one for one, (then, _) in read.items() if monotonic() - then >= FRESH_S]:
            del read[old]
        read[who] = (monotonic(), learned)
    return learned


async def forget(store: BaseStore, name: str | None = None, session: str | None = None) -> int:
    """Delete what was learned of a tool or a server, in a session, or all of it; return how many uses that were."""
    items = [
        item
        for item in await store.asearch(ROOT, limit=_ALL)
        if (name is None or f"{item.value.get('tool')}.".startswith(f"{name}."))
        and (session is None or item.value.get("session_id") == session)
    ]
    await delete(store, items)
    _READ.pop(store, None)
    return len(items)


def _use(value: dict[str, object]) -> ConfirmedUse | None:
    try:
        return ConfirmedUse.model_validate({name: value[name] for name in ConfirmedUse.model_fields if name in value})
    except ValidationError:
        return None
