"""Plain functions as tools. `reads` marks a function that changes nothing; every other function counts as a change."""

from packetgate.router import create_router
from packetgate.toolsets.servers.functions import reads


@reads
def late_orders(days: int = 7) -> list[str]:
    """List the orders that are late.

    Args:
        days: at least so many days.
    """
    return [order for order, late in {"A-17": 12, "B-4": 9, "C-1": 2}.items() if late >= days]


def cancel_order(order: str) -> str:
    """Cancel an order."""
    return f"cancelled {order}"


with create_router(tools=[late_orders, cancel_order]) as router:
    print(router.invoke("Which orders are late?").answer)
    print(router.invoke("Which orders are at least 10 days late?").answer)
    print(router.invoke("Cancel order A-17").answer)  # changes are switched off by default
