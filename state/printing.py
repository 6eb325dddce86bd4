"""Text from anywhere, made fit to be shown."""


def printable(text: str) -> str:
    """Return text without the control characters that could steer a terminal, or turn its letters around."""
    return "".join(char if char in "\n\t" or char.isprintable() or char == " " else "\ufffd" for char in text)
