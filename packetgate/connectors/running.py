"""Run a command and return its exit status.

0    done
1    a tool failed, a check found something missing, or an unexpected error
2    invalid input: an option, a file, a server; nothing was done
3    a turn waits for an answer
130  Ctrl-C
141  the program that reads the output has closed the pipe
"""

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import typer

from packetgate.connectors import process
from packetgate.state.errors import InputError, PacketgateError

BROKEN_PIPE = 141
_START_S = 5.0
"""Seconds after which start-up is over, and garbage is collected often."""


class InterruptedReadError(Exception):
    """Ctrl-C was pressed while a line was read."""


def error_line(error: PacketgateError) -> str:
    """Return an error as one line for the user: its message and its code."""
    return f"packetgate: {' '.join(str(error).split())} [{error.code}]"


def unexpected_error_line(error: Exception) -> str:
    """Return an internal error as one line for the user."""
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return f"packetgate: {message} (PACKETGATE_DEBUG=1 shows where) [internal]"


def run(command: Callable[[], Coroutine[Any, Any, int]]) -> None:
    """Run a command and exit; print an error as one line, or as a traceback if PACKETGATE_DEBUG is set."""
    try:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            status = runner.run(command())
        sys.stdout.flush()
    except PacketgateError as error:
        raise _ended(error, error_line(error), 2 if isinstance(error, InputError) else 1) from error
    except (KeyboardInterrupt, InterruptedReadError) as error:
        raise typer.Exit(process.CTRL_C_STATUS) from error
    except BrokenPipeError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python prints an error at exit
        raise typer.Exit(BROKEN_PIPE) from error
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        raise _ended(error, unexpected_error_line(error), 1) from error
    raise typer.Exit(status)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.call_later(_START_S, _end_start)

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        """Start a program and register its process, so that it ends with this process."""
        started = await super().subprocess_exec(*args, **options)
        process.register_child(started[0].get_pid())
        return started


def _end_start() -> None:
    """Collect garbage often from now on. This is fast, because modules and tools that are never freed are excluded."""
    gc.collect(1)
    gc.freeze()
    gc.set_threshold(10_000)


def _ended(error: Exception, line: str, status: int) -> Exception:
    if os.environ.get("PACKETGATE_DEBUG"):
        return error
    typer.echo(line, err=True)
    return typer.Exit(status)
