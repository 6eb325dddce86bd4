"""A model by its name, or any LangChain chat model."""

from langchain_openai import ChatOpenAI

from packetgate.router import create_router
from packetgate.toolsets.servers.functions import reads


@reads
def late_orders() -> list[str]:
    """List the orders that are late."""
    return ["A-17", "B-4"]


with create_router("openai:gpt-5-mini", [late_orders]) as router:
    print(router.invoke("Which orders are late?").answer)
with create_router(ChatOpenAI(model="gpt-5-mini"), [late_orders]) as router:
    turn = router.invoke("Which orders are late?")
    print(turn.answer)
    print(turn.usage)
