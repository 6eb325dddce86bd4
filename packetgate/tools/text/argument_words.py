"""The word lists of provenance tracing; `argument_words.toml` describes each list."""

import tomllib
from pathlib import Path
from typing import Any

_STORED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("argument_words.toml").read_text("utf-8"))
ACTIONS: dict[str, frozenset[str]] = {
    verb: frozenset([verb, *words.split()]) for verb, words in _STORED.pop("actions").items()
}
"""For each verb of a tool, all verbs that ask for the same action."""
WORDS: dict[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _STORED.items()}
