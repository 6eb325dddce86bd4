"""The program of llama.cpp's own server: in `PACKETGATE_LLAMA_SERVER`, or on the PATH."""

import os
import shutil


def program_path() -> str:
    """Return the path of the program; empty if there is none."""
    return os.environ.get("PACKETGATE_LLAMA_SERVER") or shutil.which("llama-server") or ""
