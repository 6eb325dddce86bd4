"""The `packetgate` program."""

import os

from packetgate.connectors import garbage
from packetgate.connectors.interrupts import heed_signals


def main() -> None:
    """Run the command line. Ctrl-C is heeded before anything else is imported, because that takes seconds."""
    garbage.hardly()
    heed_signals()
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from packetgate.connectors.commands import app

    app()
