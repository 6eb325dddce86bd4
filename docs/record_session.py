"""Records docs/session.svg: real commands on a small folder, and what they print.

The picture needs nothing from outside: it names only fonts that are there already.
"""

import os
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PICTURE = Path(__file__).with_name("session.svg")
WIDTH, HEIGHT = 106, 50
FILES = {
    "trip.md": """\
# Island trip

Leaving on Friday with the noon ferry from pier 4; tickets are at the desk.
Back on Sunday evening. Bring the tent, the blue stove and a map.
""",
    "packing.txt": "tent\nblue stove\n",
}
COMMANDS = (
    'packetgate ask "What does trip.md say about the ferry?"',
    "packetgate ask --session trip --allow-writes 'Append \"map\" to packing.txt'",
    "packetgate answer yes --session trip | head -n 3",
)
WAITS = 3
"""Exit status of a command that waits for an answer."""

THEME = TerminalTheme(
    (24, 24, 37),
    (205, 214, 244),
    [(69, 71, 90), (243, 139, 168), (166, 227, 161), (249, 226, 175),
     (137, 180, 250), (203, 166, 247), (148, 226, 213), (186, 194, 222)],
)  # fmt: skip
SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font: {char_height}px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font: 16px system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def recorded() -> str:
    """Run the commands, and return the picture.

    Raises:
        RuntimeError: one of them failed.
    """
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, highlight=False)
    with tempfile.TemporaryDirectory() as made:
        for text in printed(Path(made)):
            console.print(text)
    return console.export_svg(title="packetgate", theme=THEME, code_format=SVG, unique_id="session")


def printed(folder: Path) -> Iterator[Text]:
    """Yield each command and what it prints, in colour."""
    work = folder / "trip"
    work.mkdir()
    for name, text in FILES.items():
        (work / name).write_text(text)
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }
    for command in COMMANDS:
        yield Text.assemble(("$ ", "green"), (command, "bold"))
        yield Text.from_ansi(_shown(command, work, environment))


def _shown(command: str, work: Path, environment: dict[str, str]) -> str:
    """Run a command whose output goes to a terminal, with nobody at the keyboard."""
    terminal, output = os.openpty()
    termios.tcsetwinsize(output, (HEIGHT, WIDTH))
    with os.fdopen(terminal, "rb") as shown, tempfile.TemporaryFile() as errors:
        running = subprocess.Popen(  # noqa: S602
            command, shell=True, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
        )
        os.close(output)
        text = b"".join(_until_closed(shown)).decode()
        if running.wait() not in {0, WAITS}:
            errors.seek(0)
            raise RuntimeError(f"{command}: exit status {running.returncode}: {errors.read().decode()}")
    return text.replace("\r\n", "\n")


def _until_closed(shown: BinaryIO) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(shown.fileno(), 65_536)
        except OSError:  # what Linux says of a terminal whose last program has ended
            return
        if not piece:
            return
        yield piece


if __name__ == "__main__":
    PICTURE.write_text(recorded())
