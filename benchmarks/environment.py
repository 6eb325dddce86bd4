"""Create virtual environments for other libraries with `uv`, and set the folders in which programs are found."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packetgate.state.errors import InputError


def make_environment(folder: Path, of: str, *install: str) -> Path:
    """Create a virtual environment with the packages of `install`, and return the path of its Python.

    Raises:
        InputError: `uv` is missing or fails.
    """
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        raise InputError(f"the environment of {of} needs `uv`, which is not installed: `pip install uv`")
    python = folder / "bin" / "python"
    make = ["venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
    for words in (make, ["pip", "install", "--quiet", "--python", str(python), *install]):
        done = subprocess.run([uv, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise InputError(f"the environment of {of} cannot be created: {done.stderr.strip()[-400:]}")
    return python


@contextmanager
def programs_from(*folders: str) -> Iterator[None]:
    """Prepend these folders and the folder of this Python's programs to PATH."""
    before = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join([*folders, str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before
