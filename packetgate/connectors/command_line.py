"""The `packetgate` program."""

import gc
import os

from packetgate.connectors.process import install_signal_handlers


def main() -> None:
    """Run the command line. Signal handlers are installed before the imports, which take seconds."""
    gc.set_threshold(100_000)  # Python's default of 700 costs a fifth of the start-up time
    install_signal_handlers()
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from packetgate.connectors.commands import program

    program()
