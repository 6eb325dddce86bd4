"""A check of your own: the gate refuses large refunds, whoever approves them."""

from packetgate.gate.facts import Facts
from packetgate.router import create_router
from packetgate.state.routing import ToolCall, Verdict


def refund(order: str, euros: float) -> str:
    """Refund an order.

    Args:
        order: its number, such as A-17.
        euros: how much.
    """
    return f"refunded {euros} euros"


def at_most_100(call: ToolCall, facts: Facts) -> Verdict | None:
    """Refuse large refunds."""
    if call.tool_name == "functions.refund" and call.params["euros"] > 100:
        return Verdict(effect="refuse", why="functions.refund pays at most 100 euros: ask the owner")
    return None


with create_router(tools=[refund], checks=[at_most_100], settings={"allow_write_tools": True}) as router:
    print(router.invoke("Refund order A-17 20 euros").question.approve().answer)
    print(router.invoke("Refund order A-17 2000 euros").answer)
