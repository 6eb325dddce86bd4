"""A change waits for a decision: approve, edit or reject. If a value is missing, the router asks for it."""

from packetgate.router import create_router

cancelled = []


def cancel_order(order: str) -> str:
    """Cancel an order.

    Args:
        order: its number, such as A-17.
    """
    cancelled.append(order)
    return f"cancelled {order}"


with create_router(tools=[cancel_order], settings={"allow_write_tools": True}) as router:
    question = router.invoke("Cancel order A-17").question
    print(question.text)
    print(question.calls)  # [('functions.cancel_order', {'order': 'A-17'})]
    print(question.approve().answer)
    print(router.invoke("Cancel order A-18").question.edit(order="B-4").answer)
    print(router.invoke("Cancel order A-19").question.reject().answer)
    turn = router.invoke("Cancel an order")
    print(turn.answer)  # To use functions.cancel_order I need `order`. What should it be?
    print(turn.question.respond("C-1").question.approve().answer)
print(cancelled)
