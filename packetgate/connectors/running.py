"""Run a command and return its exit status.

0    done
1    a tool failed, a check found something missing, or what should not happen did
2    input that cannot be used: an option, a file, a server; nothing was done
3    a turn waits for an answer
130  Ctrl-C
141  whoever read the output went away
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import typer

from packetgate.connectors import process
from packetgate.state.errors import InputError, PacketgateError

UNREAD = 141


class InterruptedReadError(Exception):
    """Ctrl-C was pressed while a line was read."""


def run(command: Callable[[], Awaitable[int]]) -> None:
    """Run a command and exit; an error is one line, or a traceback if PACKETGATE_DEBUG is set."""
    try:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            status = runner.run(_awaited(command))
        sys.stdout.flush()
    except PacketgateError as error:
        raise _ended(error, f"{error} [{error.code}]", 2 if isinstance(error, InputError) else 1) from error
    except (KeyboardInterrupt, InterruptedReadError) as error:
        raise typer.Exit(process.STATUS) from error
    except BrokenPipeError as error:
        _close_quietly()
        raise typer.Exit(UNREAD) from error
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error} (PACKETGATE_DEBUG=1 shows where)"
        raise _ended(error, what, 1) from error
    raise typer.Exit(status)


class _Loop(asyncio.SelectorEventLoop):
    """Registers child processes, so that they end with this process."""

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        """Start a program."""
        started = await super().subprocess_exec(*args, **options)
        process.started(started[0].get_pid())
        return started


def _ended(error: Exception, what: str, status: int) -> Exception:
    if os.environ.get("PACKETGATE_DEBUG"):
        return error
    typer.echo(f"packetgate: {' '.join(what.split())}", err=True)
    return typer.Exit(status)


def _close_quietly() -> None:
    """Redirect output away from a closed pipe, or Python would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _awaited(command: Callable[[], Awaitable[int]]) -> int:
    return await command()
