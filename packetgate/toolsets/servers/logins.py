"""Store the logins of servers: in the keyring of the operating system or, where none works, in a private file."""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ValidationError

from packetgate.state.base import new_id

_SERVICE = "packetgate"
"""Name of Packetgate's entries in the keyring."""
_POLL_S = 0.05


class Login(BaseModel):
    """A login to one server."""

    url: str
    tokens: OAuthToken
    expires_at: float | None = None
    """End of the access token, as a time of `time.time`; None: unknown."""
    client: OAuthClientInformationFull
    authorization_server: OAuthMetadata | None = None
    """Names the token endpoint, so that a refresh need not look it up."""
    resource: ProtectedResourceMetadata | None = None


class LoginStore:
    """The login to one URL. All servers with this URL share it. The methods that are not async block."""

    def __init__(self, folder: Path, url: str) -> None:
        """Use a folder for the file, and for the lock of refreshes."""
        self.url = url.rstrip("/")
        self._name = f"{urlsplit(url).hostname}-{hashlib.sha256(self.url.encode()).hexdigest()[:32]}"
        self._file = folder / f"{self._name}.json"
        self.place = ""
        """Where the login is stored, once it was read or written."""

    def read(self) -> Login | None:
        """Return the login, or None if there is none that can be read."""
        keyring, text = _keyring(), None
        if keyring is not None:
            with suppress(Exception):  # a backend may raise anything, for example if the keyring is locked
                text, self.place = keyring.get_password(_SERVICE, self._name), _place(keyring)
        if text is None:
            with suppress(OSError, UnicodeDecodeError):
                text, self.place = self._file.read_text("utf-8"), f"{self._file}, mode 0600"
        with suppress(ValidationError):
            login = Login.model_validate_json(text or "")
            return login if login.url == self.url else None
        return None

    def write(self, login: Login) -> None:
        """Replace the login.

        Raises:
            OSError: no keyring works, and the file cannot be written.
        """
        keyring, text = _keyring(), login.model_dump_json(exclude_none=True)
        if keyring is not None:
            with suppress(Exception):
                keyring.set_password(_SERVICE, self._name, text)
                self._file.unlink(missing_ok=True)
                self.place = _place(keyring)
                return
        self._make_folder()
        new = self._file.with_suffix(f".{new_id()}")
        with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._file)
        self.place = f"{self._file}, mode 0600"

    def delete(self) -> bool:
        """Delete the login, and return whether there was one."""
        existed = self.read() is not None
        if (keyring := _keyring()) is not None:
            with suppress(Exception):
                keyring.delete_password(_SERVICE, self._name)
        self._file.unlink(missing_ok=True)
        return existed

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Wait until no other process or call refreshes the login, and exclude them within the block."""
        self._make_folder()
        lock = os.open(self._file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                await asyncio.sleep(_POLL_S)
            yield
        finally:
            os.close(lock)

    def _make_folder(self) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def _keyring() -> Any:
    """Return the keyring of the operating system, or None if none works."""
    try:
        import keyring
    except ImportError:
        return None
    try:
        backend = keyring.get_keyring()
        works = backend.priority > 0  # 0: no backend works; below: switched off
    except Exception:  # noqa: BLE001  of a backend that is configured and does not work
        return None
    return backend if works else None


def _place(keyring: Any) -> str:
    return f"the keyring ({keyring.name})"
