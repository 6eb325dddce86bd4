"""Settings files that appeared where confined programs could write: they are not used until the user confirms them.

A missing file cannot be mounted read-only. So before a confined program starts, the data folder, which no such program
sees, gets a note about each missing file.
"""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

SETTINGS_FILES = ("packetgate.toml", "mcp.json")


def note_missing(folder: Path, data: Path) -> None:
    """Note which settings files a folder lacks, and where its links lead. Blocking."""
    for name in SETTINGS_FILES:
        path = folder / name
        if path.is_symlink() or not path.exists():
            note = _note(path, data)
            note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            note.write_text(_target(path), "utf-8")


def is_unconfirmed(path: Path, data: Path) -> bool:
    """Return whether a settings file appeared, or became another link, after confined programs could write it."""
    note = _note(path, data)
    return os.path.lexists(path) and note.exists() and not (path.is_symlink() and note.read_text() == _target(path))


def confirm(path: Path, data: Path) -> None:
    """Use a settings file from now on."""
    _note(path, data).unlink(missing_ok=True)


def _note(path: Path, data: Path) -> Path:
    full = str(path.absolute().parent.resolve() / path.name)
    return data / "missing" / sha256(full.encode(errors="surrogateescape")).hexdigest()[:32]


def _target(path: Path) -> str:
    with suppress(OSError):
        return ascii(str(path.readlink()))
    return ""
