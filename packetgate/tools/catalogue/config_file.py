"""Read configuration files, and report the first invalid setting."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from packetgate.state.errors import ConfigError
from packetgate.tools.text.documents import DOCUMENT_READERS, DocumentFormat

MAX_FILE = 16_000_000
"""Largest configuration file, in bytes."""

NonEmpty = Annotated[str, Field(min_length=1)]
Pattern = NonEmpty
"""A canonical name, in which `*` matches any characters."""


class ConfigTable(BaseModel):
    """A table of a configuration file: unknown keys and values of the wrong type are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, str_strip_whitespace=True)


def config_error(path: Path, error: ValidationError, unknown_message: str, table: str = "") -> ConfigError:
    """Return an error that names the first invalid setting; `unknown_message` is used for an unknown setting."""
    first = error.errors(include_url=False)[0]
    parts = [table] * bool(table) + [str(part) for part in first["loc"] if part != "[key]"]
    setting = ".".join(part if part.isidentifier() or part.isdigit() else f'"{part}"' for part in parts)
    problem = unknown_message if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
    return ConfigError(f"{path}: {setting}: {problem}")


def read_plain_file(path: Path) -> bytes:
    """Return the content of a file, at most `MAX_FILE` bytes. Never blocks on a pipe or a device.

    Raise `OSError` for anything else, such as a folder, a pipe or a device.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise OSError(errno.EFBIG, f"larger than {MAX_FILE // 10**6} MB")
    return data


def read_config_file(
    path: Path, form: DocumentFormat = "TOML", check: str = "PACKETGATE_CONFIG, or leave it out"
) -> Any:
    """Return the parsed content of a file; `check` is the advice of the error if the file cannot be opened.

    Raise `ConfigError` if the file is missing, too large, not a plain file, or not valid in this format.
    """
    try:
        data = read_plain_file(path)
        return DOCUMENT_READERS[form](data.decode(json.detect_encoding(data) if form == "JSON" else "utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file: check {check}") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}: check {check}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}: save it as UTF-8") from error
    except (ValueError, RecursionError) as error:  # also numbers with thousands of digits, and deep nesting
        raise ConfigError(f"{path}: not valid {form}: {str(error).splitlines()[0]}") from error
