"""What all prompts say, whoever asks: the fixed text of the templates, piece by piece."""

import re
from pathlib import Path

PROMPTS = Path(__file__).parents[2] / "packetgate" / "prompts"


def prompt_phrases() -> list[str]:
    """Return the longest pieces of the templates that no placeholder and no line break cuts."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted(PROMPTS.glob("*.md")))
    return sorted({piece for piece in re.split(r"\$\w+|\n", text) if len(piece) > 3})
