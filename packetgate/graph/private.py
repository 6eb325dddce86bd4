"""What is kept is nobody else's business."""

import os
from contextlib import suppress
from pathlib import Path

_OURS = ("packetgate.db*", "discord-questions.*", "history", "leases", "logs", "shown", "kept", "listings")


def private_folder(path: Path) -> None:
    """Make the folder for its owner alone; one that is there is closed to others where it holds nothing but ours."""
    with suppress(OSError):  # whoever writes there says what is wrong with it
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if all(any(entry.match(pattern) for pattern in _OURS) for entry in path.iterdir()):
            path.chmod(0o700)


def private_file(path: Path) -> None:
    """Make the file, and its folder, for its owner alone; one that is there is closed to others.

    Raises:
        OSError: it cannot be made.
    """
    private_folder(path.parent)
    if not path.exists():  # to open and close a database that is in use would drop the locks that SQLite holds on it
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    with suppress(PermissionError):  # somebody else's, who chose to share it
        path.chmod(0o600)
        for file in path.parent.glob(f"{path.name}-*"):  # SQLite's files beside it
            with suppress(FileNotFoundError):  # they come and go
                file.chmod(0o600)
