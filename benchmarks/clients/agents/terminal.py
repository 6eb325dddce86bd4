"""Run a program in a pseudo-terminal, read its output, and type keys."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

ROWS, COLUMNS = 60, 400
"""Number of columns. No command is so long that the terminal wraps it."""
_STYLE = re.compile(r"\x1b\[[0-9;?<>=]*m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?<>=]*[A-Za-z]|[()][A-Z0-9]|.)")
_REPLIES = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62c"}
"""The terminal's answers when a program queries the cursor position and the terminal type."""


class Terminal:
    """A running program and its terminal. Leaving the context ends the program."""

    def __init__(self, command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
        self._screen, keyboard = pty.openpty()
        fcntl.ioctl(keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=keyboard, stdout=keyboard, stderr=keyboard, start_new_session=True
        )
        os.close(keyboard)
        self._shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(5)
        os.close(self._screen)

    def _read(self) -> None:
        while True:
            try:
                new = os.read(self._screen, 65_536)
            except OSError:  # the program closed its side
                return
            self._shown += new
            for question, answer in _REPLIES.items():
                for _ in range(new.count(question)):
                    os.write(self._screen, answer)

    @property
    def text(self) -> str:
        """The program's whole output without styles; cursor movements become spaces."""
        return _CONTROL.sub(" ", _STYLE.sub("", self._shown.decode(errors="replace"))).replace("\r", "")

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._screen, keys.encode())

    def wait_for(self, pattern: str, within: float) -> bool:
        """Return whether the program shows a pattern in time."""
        ends = time.monotonic() + within
        while not (found := re.search(pattern, self.text)) and self.process.poll() is None and time.monotonic() < ends:
            time.sleep(0.1)
        return found is not None

    def ends(self, within: float) -> bool:
        """Return whether the program exits in time."""
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join(1)
        return True
