"""Environments of other libraries, made by `uv`."""

import shutil
import subprocess
import sys
from pathlib import Path

from packetgate.state.errors import InputError


def make_environment(folder: Path, of: str, *install: str) -> Path:
    """Make a virtual environment with what `uv pip install` is told to install, and return its Python.

    Raises:
        InputError: there is no `uv`, or it fails.
    """
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        raise InputError(f"{of}'s environment is made by `uv`, which is not installed: `pip install uv`")
    python = folder / "bin" / "python"
    make = ["venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
    for words in (make, ["pip", "install", "--quiet", "--python", str(python), *install]):
        done = subprocess.run([uv, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise InputError(f"{of}'s environment cannot be made: {done.stderr.strip()[-400:]}")
    return python
