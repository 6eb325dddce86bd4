"""Files that only their owner can read."""

import os
from contextlib import suppress
from pathlib import Path

_OWN_FILES = """
packetgate.db* vectors.db* history leases logs shown kept undo.* servers confirmed logins missing writable models
offered
""".split()


def private_folder(path: Path) -> None:
    """Create a folder for its owner alone. Restrict an existing folder to its owner if it contains only Packetgate's
    files."""
    with suppress(OSError):  # the later write reports the error
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if all(any(entry.match(pattern) for pattern in _OWN_FILES) for entry in path.iterdir()):
            path.chmod(0o700)


def private_file(path: Path) -> None:
    """Create a file and its folder for their owner alone; close an existing file to others.

    Raises:
        OSError: the file cannot be created.
    """
    private_folder(path.parent)
    if not path.exists():  # opening and closing a database in use would release SQLite's locks on it
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    with suppress(PermissionError):  # another user owns the shared file
        path.chmod(0o600)
        for file in path.parent.glob(f"{path.name}-*"):  # SQLite's temporary files
            with suppress(FileNotFoundError):
                file.chmod(0o600)
