"""What of a tool is read by the encoder, as one text."""

from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

BRIEF_CHARACTERS = 300
ABOUT_CHARACTERS = 120
PARAMETERS = 12
"""How many of a tool's parameters are named."""


def text_of(spec: ToolSpec) -> str:
    """Return a tool's server, name, brief description, parameters, and what its server says of itself."""
    parameters = ", ".join(_spaced(name) for name in list(spec.parameters)[:PARAMETERS])
    parts = [
        f"{_spaced(spec.server)} {_spaced(spec.upstream_name)}:".lstrip(),
        spec.brief[:BRIEF_CHARACTERS],
        f"({parameters})" if parameters else "",
        spec.server_about[:ABOUT_CHARACTERS],
    ]
    return " ".join(part for part in parts if part)


def _spaced(name: str) -> str:
    """Return an identifier's words; itself, where it has none in plain letters."""
    return " ".join(words_of(name)) if name.isascii() else name
