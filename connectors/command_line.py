"""The `packetgate` program."""

import os

from connectors import garbage
from connectors.interrupts import heed_signals


def main() -> None:
    """Run the command line. Ctrl-C is heeded before anything else is imported, because that takes seconds."""
    garbage.hardly()
    heed_signals()
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from connectors.shadowing import check_rooms

    check_rooms()
    from connectors.commands import app

    app()
