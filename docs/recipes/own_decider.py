"""A decider of your own for one stage: here the review, which judges each call before it may run."""

from packetgate.deciders.protocols import Review
from packetgate.gate.confidence import CallReview
from packetgate.router import create_router
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket


def refund(order: str, euros: float) -> str:
    """Refund an order.

    Args:
        order: its number, such as A-17.
        euros: how much.
    """
    return f"refunded {euros} euros"


async def at_most_100(packet: CognitionPacket, tools: object, settings: RoutingContext) -> Review:
    """Approve small refunds."""
    judged = []
    for call in packet.routing.calls:
        is_small = call.params["euros"] <= 100
        judged.append(CallReview(call_id=call.call_id, approved=is_small, confidence=1, reasoning="at most 100 euros"))
    return Review(reviews=tuple(judged))


settings = {"allow_write_tools": True, "on_low_confidence": "skip"}
with create_router(tools=[refund], deciders={"reviewer": at_most_100}, settings=settings) as router:
    print(router.invoke("Refund order A-17 20 euros").question.approve().answer)
    print(router.invoke("Refund order A-17 2000 euros").answer)
