"""An MCP server on standard input and output whose tools have the schemas in a file of JSON; it answers every call."""

import json
import sys
from pathlib import Path
from typing import Any

INFO = {"capabilities": {"tools": {}}, "serverInfo": {"name": "found", "version": "1"}}


def main() -> None:
    """Serve until standard input ends."""
    schemas: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")) if sys.argv[1:] else {}
    tools = [{"name": name, "description": "Take a value.", "inputSchema": one} for name, one in schemas.items()]
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                result: dict[str, Any] = {"protocolVersion": message["params"]["protocolVersion"], **INFO}
            case "tools/list":
                result = {"tools": tools}
            case "tools/call":
                result = {"content": [{"type": "text", "text": "taken"}]}
            case _:
                result = {}
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
