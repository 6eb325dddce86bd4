"""The `packetgate` command at a terminal of its own."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pexpect
from support.command_line import COMMAND, CommandLine

TIMEOUT_S = 90
KEYS = {"Ctrl-C": "\x03", "Ctrl-D": "\x04", "Alt+Enter": "\x1b\r", "Tab": "\t", "Up": "\x1b[A"}
PASTE = ("\x1b[200~", "\x1b[201~")
"""What a terminal puts around pasted text."""

_STEERING = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")


@contextmanager
def terminal(cli: CommandLine, *args: str, **variables: str) -> Iterator[pexpect.spawn]:
    """Run a command at a terminal of 120 columns and 40 rows; on leaving, it is ended."""
    child = pexpect.spawn(
        str(COMMAND),
        list(args),
        cwd=str(cli.folder),
        env={**cli.environment, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **variables},
        dimensions=(40, 120),
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )
    try:
        yield child
    finally:
        child.close(force=True)


@contextmanager
def chatting(cli: CommandLine, *args: str, **variables: str) -> Iterator[pexpect.spawn]:
    """Run `packetgate chat`, up to its prompt."""
    with terminal(cli, "chat", "--session", "s", *args, **variables) as child:
        child.expect("you> ")
        yield child


def said(child: pexpect.spawn) -> str:
    """Return what was printed before what was last expected, without colours and movements of the cursor."""
    return _STEERING.sub("", child.before or "")


def leave(child: pexpect.spawn) -> int | None:
    """Leave a chat, and return its exit status."""
    child.send(KEYS["Ctrl-D"])
    return ended(child)


def ended(child: pexpect.spawn) -> int | None:
    """Wait until the command has ended, and return its exit status."""
    child.expect(pexpect.EOF)
    child.wait()
    status: int | None = child.exitstatus
    return status
