"""Limit the total resources of a process and its descendants, without special permissions."""

import os
import re
from contextlib import suppress

MAX_TASKS = 1_000
"""Maximum processes and threads of a confined program."""
MAX_COMMAND_GB = 4.0
"""Default memory limit of a command; on a small machine, half of the machine's memory."""
INTERVAL_S, COMMAND_INTERVAL_S = 0.25, 0.1
"""Seconds between two measurements of a server and of a command; in between, a program may exceed its limits."""
_MAX_MEASURED = 32
"""Maximum processes whose shared memory is measured: the measurement waits for processes that fork."""


def max_memory_bytes(at_most_gb: float = float("inf")) -> int:
    """Return the memory limit of a confined program, in bytes: half of the machine's memory, or less."""
    return int(min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2, at_most_gb * 1e9))


def available_memory() -> int:
    """Return the machine's available memory, in bytes; 0 if the system does not report it."""
    try:
        return _memory_of("/proc/meminfo", rb"\nMemAvailable:")
    except OSError:
        return 0


def excess_of(pid: int, max_memory: int, available_before: int = 0) -> str:
    """Return which limit a process and its descendants exceed, or an empty string. Blocking, Linux only.

    Args:
        available_before: the machine's available memory at the start: a program uses at most the memory lost since.
    """
    tasks, memory, processes = 0, 0, [pid]
    for process in processes:  # grows while processes are found
        with suppress(OSError, ValueError):
            threads = os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - a fork bomb must be measured fast
            tasks += len(threads)
            for thread in threads:
                processes += map(int, _read(f"/proc/{process}/task/{thread}/children").split())
            memory += _memory_of(f"/proc/{process}/status", rb"\nRss(?:Anon|Shmem):")
        if max(tasks, len(processes)) > MAX_TASKS:
            return f"it had more than {MAX_TASKS:,} processes and threads"
    if memory > max_memory and len(processes) <= _MAX_MEASURED:
        memory = sum(map(_own_memory, processes))
    elif memory > max_memory and available_before:
        memory = min(memory, available_before - available_memory())
    if memory > max_memory:
        return f"it used more than {max_memory / 1e9:.1f} GB of memory"
    return ""


def _own_memory(pid: int) -> int:
    """Return the memory of a process in bytes. Memory that forks share is divided among them, if the kernel reports
    it."""
    with suppress(OSError):
        return _memory_of(f"/proc/{pid}/smaps_rollup", rb"\nPss_(?:Anon|Shmem):")
    with suppress(OSError):
        return _memory_of(f"/proc/{pid}/status", rb"\nRss(?:Anon|Shmem):")
    return 0


def _memory_of(path: str, names: bytes) -> int:
    return sum(1024 * int(number) for number in re.findall(names + rb"\s+(\d+)", _read(path)))


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return file.readall()
