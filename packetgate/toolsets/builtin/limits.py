"""Limit what a process and its descendants use together, without special permissions."""

import os
from contextlib import suppress
from pathlib import Path

MAX_TASKS = 1_000
"""Processes and threads of a confined program."""
INTERVAL_S = 0.5
"""Seconds between two measurements; in between, a program may exceed its limits."""


def max_memory_bytes() -> int:
    """Return how much memory a confined program may use: half of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def excess_of(pid: int, max_memory: int) -> str:
    """Return which limit a process and its descendants exceed, or an empty string. Blocking, Linux only."""
    tasks = memory = 0
    waiting, seen = [pid], {pid}
    while waiting and tasks <= MAX_TASKS:
        process = waiting.pop()
        with suppress(OSError, ValueError):
            status = dict(
                line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":" in line
            )
            tasks += int(status["Threads"])
            memory += sum(1024 * int(status.get(name, "0").split()[0]) for name in ("RssAnon", "RssShmem"))
            for children in Path(f"/proc/{process}/task").glob("*/children"):
                waiting += [child for child in map(int, children.read_text().split()) if child not in seen]
                seen.update(waiting)
    if tasks > MAX_TASKS:
        return f"it had more than {MAX_TASKS:,} processes and threads"
    if memory > max_memory:
        return f"it used more than {max_memory / 1e9:.1f} GB of memory"
    return ""
