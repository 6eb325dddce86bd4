"""A lockable backend of `keyring` that stores its entries in files."""

from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class FileKeyring(KeyringBackend):
    name = "file keyring"
    priority = 1  # type: ignore[assignment]

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.is_locked = False

    def _file(self, service: str, username: str) -> Path:
        if self.is_locked:
            raise KeyringLocked("the keyring is locked")
        self._folder.mkdir(exist_ok=True)
        return self._folder / f"{service} {username}"

    def get_password(self, service: str, username: str) -> str | None:
        file = self._file(service, username)
        return file.read_text() if file.exists() else None

    def set_password(self, service: str, username: str, password: str) -> None:
        self._file(service, username).write_text(password)

    def delete_password(self, service: str, username: str) -> None:
        file = self._file(service, username)
        if not file.exists():
            raise PasswordDeleteError("no such password")
        file.unlink()
