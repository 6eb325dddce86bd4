"""A checkpointer and a store of your own: the conversation goes on after the program has ended."""

import asyncio

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.sqlite.aio import AsyncSqliteStore

from packetgate.router import Turn, create_router
from packetgate.toolsets.servers.functions import reads


@reads
def read_stock(item: str) -> str:
    """Return how many of an item are in stock."""
    return f"11 {item}"


async def ask(request: str) -> Turn:
    """Run a turn of Ada's conversation in a new router."""
    async with (
        AsyncSqliteSaver.from_conn_string("sessions.db") as checkpointer,
        AsyncSqliteStore.from_conn_string("store.db") as store,
        create_router(tools=[read_stock], checkpointer=checkpointer, store=store, journal="journal.db") as router,
    ):
        return await router.ainvoke(request, thread="ada")


print(asyncio.run(ask('Read the stock of the item "pears"')).answer)
turn = asyncio.run(ask('Read the stock of the item "plums"'))
print(turn.answer)
print(len(turn.packet.messages), "messages in the conversation")
