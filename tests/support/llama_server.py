"""The program of llama.cpp's own server: in `PACKETGATE_LLAMA_SERVER`, from `make llama-server`, or on the PATH."""

import os
import shutil
import sysconfig


def program_path() -> str:
    """Return the path of the program; empty if it is missing."""
    own = shutil.which("llama-server", path=sysconfig.get_path("scripts"))
    return os.environ.get("PACKETGATE_LLAMA_SERVER") or own or shutil.which("llama-server") or ""
