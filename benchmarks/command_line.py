"""The command line of a benchmark: its parser, the option for the data sets, and one-line errors."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from packetgate.state.errors import PacketgateError


def command_parser(name: str, about: str | None) -> argparse.ArgumentParser:
    """Return the parser of `python -m NAME`; `about` is the module's docstring."""
    return argparse.ArgumentParser(prog=name, description=about, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_data_option(parser: argparse.ArgumentParser, name: str = "--data") -> None:
    """Add an option, or the argument `data`, for the folder of the data sets; the default is PACKETGATE_DATA."""
    optional: dict[str, Any] = {} if name.startswith("-") else {"nargs": "?"}
    default = os.environ.get("PACKETGATE_DATA") or None
    parser.add_argument(name, type=Path, default=default, help="folder of the data sets", **optional)


@contextmanager
def errors_in_one_line(parser: argparse.ArgumentParser, *others: type[Exception]) -> Iterator[None]:
    """Print an error of Packetgate, or one of `others`, as one line, and exit with status 2."""
    shown: tuple[type[Exception], ...] = (PacketgateError, *others)
    try:
        yield
    except shown as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
