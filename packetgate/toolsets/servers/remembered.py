"""Remember a server's list from its last start, so that a client's first list need not wait for the server."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from packetgate.tools.spec.tool_spec import digest_of


@dataclass(frozen=True)
class ListedTools:
    """The tools of a server as it lists them, and its description of itself."""

    tools: list[dict[str, Any]] = field(default_factory=list)
    """Usable definitions, unchanged."""
    instructions: str = ""
    version: str = ""


@dataclass(frozen=True)
class ListMemory:
    """Stores the `ListedTools` of each server in a separate file in `folder`, for its name and entry."""

    folder: Path

    def _path(self, server: str, entry: Mapping[str, Any]) -> Path:
        return self.folder / f"{server}-{digest_of([dict(entry), str(Path.cwd())])[:12]}.json"

    def load(self, server: str, entry: Mapping[str, Any]) -> ListedTools:
        """Return the last list of a server with this entry; empty if there is none. Blocking."""
        with suppress(OSError, ValueError, TypeError, RecursionError):
            return ListedTools(**json.loads(self._path(server, entry).read_bytes()))
        return ListedTools()

    def save(self, server: str, entry: Mapping[str, Any], listed: ListedTools) -> None:
        """Store the list of a server. Errors in writing the file are ignored. Blocking."""
        if self.load(server, entry) == listed:
            return
        path = self._path(server, entry)
        new = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_text(json.dumps(asdict(listed)), "utf-8")
            new.chmod(0o600)
            new.replace(path)
