"""Which call, and whether it is right, without a model: in a thread, which imports what reads it when first asked."""

import asyncio

from packetgate.deciders.protocols import Review, Selection
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue


async def select_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
    """Choose the likeliest tool that serves each part of the step, with arguments from the request."""
    return await asyncio.to_thread(_select, packet, catalogue)


async def review_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
    """Say how probably each call is right, and what speaks against it."""
    return await asyncio.to_thread(_review, packet, catalogue)


def _select(packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    from packetgate.deciders.reflex.selection import select

    return select(packet, catalogue)


def _review(packet: CognitionPacket, catalogue: Catalogue) -> Review:
    from packetgate.deciders.reflex.review import review

    return review(packet, catalogue)
