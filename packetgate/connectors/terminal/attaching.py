"""Files of this machine as what is attached to a request."""

from pathlib import Path

from packetgate.state.errors import RequestError
from packetgate.tools.attached.parts import Part, part_of
from packetgate.tools.attached.pictures import MAX_BYTES


def file_part(path: Path) -> Part:
    """Return a file as a part of a message. Blocking.

    Raises:
        RequestError: it cannot be read, or is neither text nor a picture, or too large.
    """
    where = path.expanduser()
    try:
        with where.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RequestError(f"{path} cannot be attached: {error.strerror or error}") from error
    return part_of(path.name, data)
