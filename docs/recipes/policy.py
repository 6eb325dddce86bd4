"""Rules of a `packetgate.toml` on single calls, and the settings of the gate."""

from packetgate.router import create_router


def cancel_order(order: str) -> str:
    """Cancel an order.

    Args:
        order: its number, such as A-17.
    """
    return f"cancelled {order}"


settings = {"allow_write_tools": True, "confidence_threshold": 0.6}
with create_router(tools=[cancel_order], policy="packetgate.toml", settings=settings) as router:
    print(router.invoke("Cancel order T-1").answer)  # a rule allows the call: no question
    print(router.invoke("Cancel order A-17").answer)  # a rule denies the call
    print(router.invoke("Cancel order B-4").question.calls)  # no rule matches: a question
