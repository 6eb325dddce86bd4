"""The pictures that a model is shown beside the words: what the user attached, and what tools returned."""

import asyncio

from packetgate.deciders.language.prompting import harmless
from packetgate.models.pictures import Picture
from packetgate.state.attachments import ResultAttachment
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Attachment
from packetgate.tools.attached.parts import MAX_PICTURES
from packetgate.tools.attached.pictures import kept_picture, problem_of
from packetgate.tools.text.kept import KeptResults


async def attached_pictures(packet: CognitionPacket, kept: KeptResults | None) -> list[Picture]:
    """Return the pictures that the user attached to the request."""
    attached = [one for one in packet.content.attachments if one.is_picture]
    return [await _read(one, f"attached: {one.told}, {one.handle}", packet, kept, one.name) for one in attached]


async def earlier_pictures(packet: CognitionPacket, kept: KeptResults | None, *, sees: bool | None) -> list[Picture]:
    """Return the pictures that the user attached a few turns ago, which the request may still be about."""
    known = None if sees is False else kept
    return [
        await _read(one, f"attached earlier: {one.told}, {one.handle}", packet, known)
        for one in packet.context.earlier_pictures
    ]


async def returned_pictures(packet: CognitionPacket, kept: KeptResults | None, *, sees: bool | None) -> list[Picture]:
    """Return the pictures that tools returned, the last few; to a model that is not known to see in words alone."""
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    known = kept if sees else None
    return [
        await _read(one, f"returned by {call.tool_name}, untrusted: {one.told}", packet, known)
        for call in calls
        if call.result
        for one in call.result.attachments
        if one.kind == "image"
    ][-MAX_PICTURES:]


async def _read(
    one: Attachment | ResultAttachment, told: str, packet: CognitionPacket, kept: KeptResults | None, name: str = ""
) -> Picture:
    def read() -> bytes | None:
        data = kept_picture(one, kept, packet.header.session_id) if kept else None
        return None if data is None or problem_of(one.mime_type, data) else data

    return Picture(harmless(told), one.mime_type, await asyncio.to_thread(read), name)
