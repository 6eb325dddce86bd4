"""Store the tools of servers in files, to list them while the servers start."""

import json
import logging
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from mcp_types import Tool
from pydantic import TypeAdapter, ValidationError

log = logging.getLogger(__name__)

VERSION = 1
MAX_BYTES = 50_000_000
"""Larger files are not read."""

_TOOLS = TypeAdapter(list[Tool])


@dataclass(frozen=True)
class StoredListing:
    """The tools and the instructions of a server, untrusted."""

    tools: list[Tool]
    about: str


class StoredListings:
    """A folder with one file per server. All methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, server: str, digest: str) -> StoredListing | None:
        """Return the stored listing; None if there is none, or the entry has changed."""
        file = self._file(server)
        try:
            if file.stat().st_size > MAX_BYTES:
                return None
            stored = json.loads(file.read_bytes())
            if stored["version"] != VERSION or stored["server"] != server or stored["digest"] != digest:
                return None
            return StoredListing(_TOOLS.validate_python(stored["tools"]), str(stored["about"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError, ValidationError) as error:
            log.warning("%s is not used: %s", file, error)
            return None

    def save(self, server: str, digest: str, listing: StoredListing) -> None:
        """Store a listing; failures are logged."""
        file = self._file(server)
        stored: dict[str, Any] = {"version": VERSION, "server": server, "digest": digest, "about": listing.about}
        try:
            tools = _TOOLS.dump_python(listing.tools, mode="json", by_alias=True, exclude_none=True)
            content = json.dumps({**stored, "tools": tools}).encode()
            with suppress(FileNotFoundError):
                if file.read_bytes() == content:
                    return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(file, content)
        except (OSError, ValueError, RecursionError) as error:
            log.warning("the tools of server %s are not stored: %s", server, error)

    def _file(self, server: str) -> Path:
        return self._folder / f"{sha256(server.encode(errors='replace')).hexdigest()[:32]}.json"


def _replace(file: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(content)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
