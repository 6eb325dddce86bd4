"""Settings of a process: command line, then environment, then the models of `packetgate.toml`. No secrets."""

import os
import shlex
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_data_path
from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from packetgate.models.options import model_names_in
from packetgate.state.errors import ConfigError
from packetgate.tools.catalogue.config_file import read_config_file
from packetgate.toolsets.builtin.appeared import is_unconfirmed

DEFAULT_CONFIG = Path("mcp.json")
DEFAULT_PREFERENCES = Path("packetgate.toml")
USAGE_DAYS = 90
VECTORS = "vectors.db"


def _data_folder() -> Path:
    return user_data_path("packetgate", appauthor=False)


def shared_vectors_path() -> Path:
    """Return the cache of tools' vectors for programs without `Settings`, in the same folder."""
    return Path(os.environ.get("PACKETGATE_HOME") or _data_folder()) / VECTORS


class Settings(BaseSettings):
    """Each field is also an environment variable with the prefix `PACKETGATE_`."""

    model_config = SettingsConfigDict(env_prefix="PACKETGATE_", frozen=True, extra="ignore")

    lite: str = Field(default="reflex", description="Model for intent and selection.")
    prime: str = Field(default="reflex", description="Model for review and answer.")
    fallback: Literal["none", "reflex"] = Field(
        default="none", description="What decides if a model gives no usable answer: an error (none), or reflex."
    )
    mcp_config: Path | None = Field(default=None, description="mcp.json; by default the one in the working folder.")
    config: Path | None = Field(default=None, description="packetgate.toml; by default the one in the working folder.")
    root: Path = Field(default=Path(), description="Folder that the built-in tools may access.")
    home: Path = Field(
        default_factory=_data_folder,
        description="Folder of sessions and logs.",
    )
    database_url: str | None = Field(
        default=None, description="postgresql://...: store sessions in PostgreSQL instead of SQLite."
    )
    usage_days: int = Field(
        default=USAGE_DAYS,
        ge=0,
        le=36_500,
        description="Days for which calls teach the ranking and the calibration; 0: none.",
    )
    sandbox: Literal["auto", "require", "off"] | None = Field(
        default=None, description="Sandbox of ai.execute: auto (bubblewrap if it works), require or off."
    )
    sandbox_network: bool | None = Field(
        default=None, description="Whether programs in the sandbox have network access."
    )
    embeddings: str | None = Field(default=None, description="openai:NAME: embedding model for the tool search.")
    answer_wait_s: float = Field(
        default=20.0, ge=0, description="Longest wait of a proxied call for an answer outside its client, in seconds."
    )
    patience_s: float = Field(default=20.0, gt=0, description="Longest wait for servers that are starting, in seconds.")

    @model_validator(mode="before")
    @classmethod
    def _with_named_models(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Take models from `packetgate.toml` if no variable or option sets them."""
        path = Path(values.get("config") or DEFAULT_PREFERENCES)
        try:
            is_usable = path.is_file() and not is_unconfirmed(path, Path(values.get("home") or _data_folder()))
            configured_names = model_names_in(read_config_file(path).get("models", {})) if is_usable else {}
        except (ConfigError, OSError):
            configured_names = {}  # reported when the rest of the file is read
        return {role: name for role, name in configured_names.items() if role in ("lite", "prime")} | values

    @property
    def config_path(self) -> Path | None:
        """Path of the mcp.json to read; None means only built-in tools. Raise `ConfigError` if it is not confirmed."""
        return self._confirmed(self.mcp_config or (DEFAULT_CONFIG if DEFAULT_CONFIG.is_file() else None))

    @property
    def preferences_path(self) -> Path | None:
        """Path of the packetgate.toml to read, or None. Raise `ConfigError` if it is not confirmed."""
        return self._confirmed(self.config or (DEFAULT_PREFERENCES if DEFAULT_PREFERENCES.is_file() else None))

    def _confirmed(self, path: Path | None) -> Path | None:
        try:
            must_be_confirmed = path is not None and is_unconfirmed(path, self.home)
        except OSError as error:
            raise ConfigError(
                f"{self.home} cannot be read: {error}; set PACKETGATE_HOME to a folder of yours"
            ) from error
        if path is not None and must_be_confirmed:
            home = (
                f"PACKETGATE_HOME={shlex.quote(str(self.home.absolute()))} " if "home" in self.model_fields_set else ""
            )
            raise ConfigError(
                f"{path} appeared after confined programs could write to its folder, so they may have written it: read "
                f"the file; to use it, run `{home}packetgate policy --confirm {shlex.quote(str(path.absolute()))}`, "
                "else delete it"
            )
        return path

    @property
    def has_database(self) -> bool:
        """Whether a database exists; PostgreSQL counts as existing."""
        return self.database_url is not None or self.database.exists()

    @property
    def database(self) -> Path:
        """The SQLite file of all sessions."""
        return self.home / "packetgate.db"

    @property
    def vectors_path(self) -> Path:
        """Cache of the tools' vectors."""
        return self.home / VECTORS

    @property
    def models_path(self) -> Path:
        """Folder of downloaded models."""
        return self.home / "models"

    @property
    def logs_path(self) -> Path:
        """Folder of the servers' logs."""
        return self.home / "logs"

    @property
    def logins_path(self) -> Path:
        """Folder of the logins of servers, where no keyring works."""
        return self.home / "logins"

    @property
    def results_path(self) -> Path:
        """Folder of long results and attachments."""
        return self.home / "kept"

    @property
    def undo_path(self) -> Path:
        """The SQLite file with the recorded changes of files, and the contents that they replaced."""
        return self.home / "undo.db"
