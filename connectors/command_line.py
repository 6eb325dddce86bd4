"""The `packetgate` program."""

import gc
import os

from connectors.interrupts import heed_signals


def main() -> None:
    """Run the command line. Ctrl-C is heeded before anything else is imported, because that takes seconds.

    Garbage is looked for at every 100,000 objects instead of 700: most of what is imported stays, so that looking at it
    again and again is a fifth of what an import takes.
    """
    gc.set_threshold(100_000, 10, 10)
    heed_signals()
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from connectors.shadowing import check_rooms

    check_rooms()
    from connectors.commands import app

    app()
