"""The public data sets, if available, in `PACKETGATE_DATA` or in `shared/data/routing` next to the checkout."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def data_folder() -> Path | None:
    """Return the folder, or None."""
    named = os.environ.get("PACKETGATE_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data" / "routing"
    return folder if folder.is_dir() else None


def read_rows(*path: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSON Lines file of the folder; nothing if it does not exist."""
    folder = data_folder()
    file = folder.joinpath(*path) if folder else None
    if file is None or not file.is_file():
        return
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
