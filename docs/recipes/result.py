"""The result of a turn: its calls, their results, the tokens, and each decision with its reason."""

from packetgate.router import create_router
from packetgate.toolsets.servers.functions import reads


@reads
def late_orders() -> list[str]:
    """List the orders that are late."""
    return ["A-17", "B-4"]


with create_router(tools=[late_orders]) as router:
    turn = router.invoke("Which orders are late?")
for call in turn.calls:
    print(call.tool_name, call.params, call.status.value, call.review_confidence, call.risk.value, call.result.output)
for line in turn.packet.reasoning.reflection_log:
    print(f"{line.step}: {line.summary}")
print(turn.usage)
