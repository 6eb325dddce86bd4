"""Pictures that tools returned, as files to upload; of all else that they returned besides text, a word."""

import io
from collections.abc import Iterable

import discord

from packetgate.state.attachments import ResultAttachment
from packetgate.tools.attached.pictures import kept_picture
from packetgate.tools.text.kept import KeptResults

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
        fits = one.size <= MAX_BYTES and len(pictures) < MAX_PICTURES
        data = kept_picture(one, kept, session) if fits else None
        if data is None:
            notes.append(f"`{one.told.replace('`', ' ')}` is not shown here")
        else:
            name = f"image-{len(pictures) + 1}.{one.mime_type.removeprefix('image/')}"
            pictures.append(discord.File(io.BytesIO(data), name))
    return pictures, notes
