"""The `packetgate` command at a pseudo-terminal."""

import os
import re
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pexpect
from pexpect import fdpexpect
from support.command_line import CommandLine
from support.fork_server import Forked

from packetgate.graph.private_files import private_file

TIMEOUT_S = 90
KEYS = {"Ctrl-C": "\x03", "Ctrl-D": "\x04", "Tab": "\t", "Up": "\x1b[A"}
PASTE = ("\x1b[200~", "\x1b[201~")
"""The marks that a terminal puts around pasted text."""

_STEERING = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")


class Terminal(fdpexpect.fdspawn):
    """A terminal with a running command."""

    def __init__(self, ours: int, process: Forked) -> None:
        super().__init__(ours, encoding="utf-8", timeout=TIMEOUT_S)
        self._process = process

    def wait(self) -> int:
        """Wait until the command has ended, and return its exit status."""
        return self._process.wait(TIMEOUT_S)

    def terminate(self) -> None:
        """Send SIGTERM to the command, like a service manager."""
        os.kill(self._process.pid, signal.SIGTERM)

    def close(self) -> None:
        """Close the terminal, and kill the command."""
        super().close()
        self._process.kill()


@contextmanager
def terminal(cli: CommandLine, *args: str, is_first: bool = False, **variables: str) -> Iterator[Terminal]:
    """Run a command at a terminal of 120 columns and 40 rows until the end of the block.

    `is_first`: whether this may be the user's first command; if no model is set, the command then offers `init`.
    """
    if not is_first:
        private_file(cli.home / "offered")
    ours, its = os.openpty()
    termios.tcsetwinsize(its, (40, 120))
    settings = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **variables}
    child = Terminal(ours, cli.fork(args, (its, its, its), terminal=True, **settings))
    os.close(its)
    try:
        yield child
    finally:
        child.close()


@contextmanager
def chatting(cli: CommandLine, *args: str, **variables: str) -> Iterator[Terminal]:
    """Run `packetgate chat`, up to its prompt."""
    with terminal(cli, "chat", "--session", "s", *args, **variables) as child:
        child.expect("you> ")
        yield child


def printed(child: Terminal) -> str:
    """Return the output before the last expected text, without colours and cursor movements."""
    return _STEERING.sub("", child.before or "")


def leave(child: Terminal) -> int:
    """Leave a chat, and return its exit status."""
    child.send(KEYS["Ctrl-D"])
    return ended(child)


def ended(child: Terminal) -> int:
    """Wait until the command has ended, and return its exit status."""
    child.expect(pexpect.EOF)
    return child.wait()
