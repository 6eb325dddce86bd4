"""Settings files that appeared where confined programs could write: they are not used until the user confirms them.

A missing file cannot be mounted read-only. So before a confined program starts, Packetgate notes each folder that the
program may change, and the settings files already there. The notes are in the data folder, which no such program sees.
"""

import fcntl
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

SETTINGS_FILES = ("packetgate.toml", "mcp.json")


def note_writable(folder: Path, data: Path, settings_files: Iterable[Path]) -> None:
    """Note that confined programs may change a folder and its contents. Blocking.

    Args:
        settings_files: the settings files below the folder; they are confirmed, unless a program could write them.
    """
    folder, notes = folder.resolve(), data / "writable"
    notes.mkdir(mode=0o700, parents=True, exist_ok=True)
    (notes / "lock").touch(0o600)
    with (notes / "lock").open("a", encoding="utf-8") as lock:  # of two first starts, one notes the existing files
        fcntl.flock(lock, fcntl.LOCK_EX)
        for note in notes.glob("*.file"):
            with suppress(ValueError, OSError):  # a truncated note confirms no file
                path = Path(json.loads(note.read_text("utf-8"))[0])
                if path.is_relative_to(folder) and not os.path.lexists(path):
                    note.unlink(missing_ok=True)
        if not _is_writable(folder, data):
            for path in settings_files:
                if _full(path).is_relative_to(folder) and not is_unconfirmed(path, data):
                    confirm(path, data)
            _note(folder, data, "folder").touch(0o600)


def is_unconfirmed(path: Path, data: Path) -> bool:
    """Return whether a settings file appeared, or became another link, after confined programs could write it."""
    full = _full(path)
    if full.name not in SETTINGS_FILES or not os.path.lexists(full) or not _is_writable(full.parent, data):
        return False
    note = _note(full, data, "file")
    return not note.exists() or note.read_text("utf-8") != _identity(full)


def confirm(path: Path, data: Path) -> None:
    """Use a settings file from now on."""
    note = _note(_full(path), data, "file")
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    note.touch(0o600)
    note.write_text(_identity(_full(path)), "utf-8")


def _full(path: Path) -> Path:
    return path.absolute().parent.resolve() / path.name


def _is_writable(folder: Path, data: Path) -> bool:
    return any(_note(one, data, "folder").exists() for one in (folder, *folder.parents))


def _note(path: Path, data: Path, kind: str) -> Path:
    return data / "writable" / f"{sha256(os.fsencode(path)).hexdigest()[:32]}.{kind}"


def _identity(path: Path) -> str:
    target = ""
    with suppress(OSError):
        target = str(path.readlink())
    return json.dumps([str(path), target])
