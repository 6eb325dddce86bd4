"""A FastMCP server in this process."""

from garden_server import garden

from packetgate.router import create_router

with create_router(tools=[garden], settings={"allow_write_tools": True}) as router:
    print(router.invoke("List the flower beds of the garden").answer)
    turn = router.invoke("Water the bed roses")
    print(turn.question.approve().answer)
