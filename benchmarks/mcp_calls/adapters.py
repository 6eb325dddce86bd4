"""Run langchain-mcp-adapters in its own environment: `python adapters.py PYTHON SERVER`.

For each input line `NUMBER`, it makes that number of concurrent calls, each in its own session, as documented. For
`kept NUMBER`, all calls use one open session. For each line, it prints the duration of the calls in milliseconds.
"""

import asyncio
import sys
import time
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


async def main(python: str, server: str) -> None:
    """Answer input lines until standard input ends."""
    client = MultiServerMCPClient({"echo": {"command": python, "args": [server], "transport": "stdio"}})
    async with client.session("echo") as session:
        tools: dict[str, Any] = {
            "kept": (await load_mcp_tools(session))[0],
            "": (await client.get_tools())[0],
        }
        while line := await asyncio.to_thread(sys.stdin.readline):
            kind, _, number = line.strip().rpartition(" ")
            started = time.perf_counter()
            answers = await asyncio.gather(*(tools[kind].ainvoke({"text": "hello"}) for _ in range(int(number))))
            took = 1000 * (time.perf_counter() - started)
            if not all("hello" in str(one) for one in answers):
                raise RuntimeError(answers[0])
            print(took, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
