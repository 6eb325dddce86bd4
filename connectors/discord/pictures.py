"""Pictures that tools returned, as files to upload; of all else that they returned besides text, a word."""

import io
from collections.abc import Iterable
from hashlib import sha256

import discord

from state.attachments import ResultAttachment
from tools.servers.signatures import is_surely
from tools.text.kept import KeptResults

MAX_BYTES = 8_000_000
MAX_PICTURES = 4
"""Of one answer."""


def pictures_of(
    attachments: Iterable[ResultAttachment], kept: KeptResults, session: str
) -> tuple[list[discord.File], list[str]]:
    """Return the pictures that a session keeps and that are what they are declared to be, and a note on each other
    attachment. Blocking.
    """
    pictures: list[discord.File] = []
    notes: list[str] = []
    for one in attachments:
        data = _picture(one, kept, session) if len(pictures) < MAX_PICTURES else None
        if data is None:
            notes.append(f"`{one.told.replace('`', ' ')}` is not shown here")
        else:
            name = f"image-{len(pictures) + 1}.{one.mime_type.removeprefix('image/')}"
            pictures.append(discord.File(io.BytesIO(data), name))
    return pictures, notes


def _picture(one: ResultAttachment, kept: KeptResults, session: str) -> bytes | None:
    if one.size > MAX_BYTES or not one.mime_type.startswith("image/"):
        return None
    file = kept.file(one.handle, session)
    try:
        data = file.read_bytes() if file else b""
    except OSError:  # it was removed just now
        return None
    as_recorded = len(data) == one.size and sha256(data).hexdigest() == one.sha256
    return data if as_recorded and is_surely(one.mime_type, data) else None
