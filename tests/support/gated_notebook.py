"""A notebook server whose reads wait until the test opens a gate."""

import asyncio

from support.notebook import Notebook


class GatedNotebook(Notebook):
    """`gate` is open when it is set."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        super().__init__()

    async def read_note(self, name: str) -> str:
        await self.gate.wait()
        return await super().read_note(name)
