"""The MCP servers of an `mcp.json`, each started when it is first needed."""

from packetgate.router import create_router

with create_router(tools=["mcp.json"]) as router:
    turn = router.invoke("List the flower beds of the garden")
    print(turn.answer)
    for server in turn.packet.context.servers:
        print(server.name, server.state)
