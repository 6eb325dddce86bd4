"""The `packetgate` program."""

import os

from packetgate.connectors import process
from packetgate.connectors.process import heed_signals


def main() -> None:
    """Run the command line. Signal handlers are installed before the imports, which take seconds."""
    process.raise_gc_threshold()
    heed_signals()
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from packetgate.connectors.commands import program

    program()
