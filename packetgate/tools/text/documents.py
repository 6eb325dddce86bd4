"""Settings files of any form, told by the ending of the name."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from packetgate.tools.text import jsonc, yaml

Form = Literal["JSON", "TOML", "YAML"]
READERS: Mapping[Form, Callable[[str], Any]] = {"JSON": jsonc.loads, "TOML": tomllib.loads, "YAML": yaml.loads}


def form_of(path: Path) -> Form:
    """Return the form of a file; JSON if its name does not say."""
    endings: Mapping[str, Form] = {".toml": "TOML", ".yaml": "YAML", ".yml": "YAML"}
    return endings.get(path.suffix.lower(), "JSON")
