"""The `packetgate` program."""

import os

from packetgate.connectors import process
from packetgate.connectors.process import install_signal_handlers


def main() -> None:
    """Run the command line. Signal handlers are installed before the imports, which take seconds."""
    process.raise_gc_threshold()
    install_signal_handlers()
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from packetgate.connectors.commands import program

    program()
