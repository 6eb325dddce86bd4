"""Store the tools of servers in files, to list them while the servers start."""

import logging
import os
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from mcp_types import Tool
from pydantic import BaseModel

log = logging.getLogger(__name__)

_MAX_FILE_BYTES = 50_000_000
"""Larger files are not read."""


class StoredListing(BaseModel):
    """The tools and the instructions of a server, untrusted."""

    tools: list[Tool]
    about: str
    server: str = ""
    digest: str = ""
    """Identifies the server's entry."""


class StoredListings:
    """A folder with one file per server. All methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, server: str, digest: str) -> StoredListing | None:
        """Return the stored listing; None if there is none, or the entry has changed."""
        file = self._file(server)
        try:
            if file.stat().st_size > _MAX_FILE_BYTES:
                return None
            stored = StoredListing.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("%s is not used: %s", file, error)
            return None
        return stored if (stored.server, stored.digest) == (server, digest) else None

    def save(self, server: str, digest: str, listing: StoredListing) -> None:
        """Store a listing; failures are logged."""
        file = self._file(server)
        stored = StoredListing(tools=listing.tools, about=listing.about, server=server, digest=digest)
        try:
            content = stored.model_dump_json(by_alias=True, exclude_none=True).encode()
            with suppress(FileNotFoundError):
                if file.read_bytes() == content:
                    return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._folder, suffix=".tmp")
            with os.fdopen(descriptor, "wb") as written:
                written.write(content)
            Path(name).replace(file)
        except (OSError, ValueError) as error:
            log.warning("the tools of server %s are not stored: %s", server, error)

    def _file(self, server: str) -> Path:
        return self._folder / f"{sha256(server.encode(errors='replace')).hexdigest()[:32]}.json"
