"""Programs that try to outlive the process that started them."""

import time
from pathlib import Path
from uuid import uuid4

KINDS = ("env -i", "setsid", "env -i setsid", "env -i setsid sh -c '(\"$@\" &)' sh")
"""With a cleared environment, in a new session, with both, and with both as an orphan."""


class Sleepers:
    """Processes that sleep for a unique time, which identifies the processes in every namespace."""

    def __init__(self) -> None:
        self._command = ["sleep", f"300.{uuid4().int % 10**12:012}"]
        line = " ".join(self._command)
        started = f"until [ \"$(pgrep -cxf '{line}')\" = {len(KINDS)} ]; do sleep 0.05; done\necho started\n"
        self.script = "trap '' TERM\n" + "".join(f"{kind} {line} &\n" for kind in KINDS) + started
        """Starts the processes, which ignore SIGTERM, and continues when all are running."""

    def alive(self) -> int:
        """Return the number of running processes."""
        return sum(map(self._is_one, Path("/proc").glob("[0-9]*")))

    def begin(self) -> None:
        """Wait until all processes are running."""
        for _ in range(3_000):
            if self.alive() == len(KINDS):
                return
            time.sleep(0.02)
        raise TimeoutError("they were never started")

    def end(self) -> bool:
        """Return whether all processes exit by themselves within ten seconds."""
        for _ in range(500):
            if not self.alive():
                return True
            time.sleep(0.02)
        return False

    def _is_one(self, entry: Path) -> bool:
        try:
            return (entry / "cmdline").read_text().split("\0")[:-1] == self._command
        except OSError:
            return False
