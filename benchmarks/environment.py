"""Create virtual environments for other libraries with `uv`."""

import shutil
import subprocess
import sys
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
