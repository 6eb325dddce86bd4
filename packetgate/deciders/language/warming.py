"""Evaluate the beginning of the prompts of models on this machine, before the first message arrives."""

import asyncio
from contextlib import suppress

from langchain_core.messages import HumanMessage

from packetgate.deciders.language.prompting import token_counter, tool_offer, tool_text_for, turn_messages
from packetgate.deciders.language.review import check_messages
from packetgate.deciders.protocols import Selection, ToolSelector
from packetgate.models.model import ask_chat
from packetgate.models.pool import ModelSource
from packetgate.ranking.choice import PaletteRequest, choose_palette
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, ModelError
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Content
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox

_WORDS = "Hello"  # the request of the prompts
_NO_ANSWER = {"max_tokens": 1}


class PrefixWarmer:
    """Has the models evaluate instructions and tools, so that the first turn evaluates only the request."""

    def __init__(self, lite: ModelSource, prime: ModelSource) -> None:
        self._lite, self._prime = lite, prime
        self._evaluation: asyncio.Task[None] | None = None
        self._has_turns = False

    async def warm(self, toolbox: Toolbox, context: RoutingContext) -> None:
        """Evaluate the prompts, unless a turn has begun.

        An error of a model is not raised here, because the turn asks the same model and reports it.
        """
        catalogue = await toolbox.catalogue()
        if catalogue and not self._has_turns:
            self._evaluation = asyncio.create_task(self._evaluate(catalogue, context))
            with suppress(DecisionError, ModelError):
                await self._evaluation

    def before(self, select: ToolSelector) -> ToolSelector:
        """Return a selector that waits for a running evaluation: a server may compute two prompts at half speed."""

        async def decide(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
            self._has_turns = True
            if self._evaluation and not self._evaluation.done():
                await asyncio.wait([self._evaluation])
            return await select(packet, catalogue, context)

        return decide

    async def _evaluate(self, catalogue: Catalogue, context: RoutingContext) -> None:
        lite, prime = await self._lite(), await self._prime()
        if prime.runs_here:  # before the tools: a server may keep only its last prompt
            question = check_messages(_WORDS, next(iter(catalogue.values())), {})
            await ask_chat(prime.chat, question, prime.sampling(temperature=0.0) | _NO_ANSWER)
        if not lite.runs_here:
            return
        packet = CognitionPacket(messages=[HumanMessage(_WORDS)], content=Content(original_prompt=_WORDS))
        request = PaletteRequest(
            words="",
            access=packet.intent.access,
            size=context.palette_size,
            token_budget=context.palette_token_budget,
            tokens=token_counter(lite),
            text=tool_text_for(lite),
        )
        palette = await asyncio.to_thread(choose_palette, request, catalogue)
        packet = packet.model_copy(update={"context": packet.context.changed(palette=palette.entries)})
        offer = await asyncio.to_thread(tool_offer, lite, packet, catalogue)
        messages = await turn_messages(lite, packet, catalogue, context, offer, context.selection_max_tokens)
        sampling = lite.sampling(temperature=0.0) | _NO_ANSWER
        await lite.call(messages, offer.tools, max_calls=context.max_parallel_calls, sampling=sampling)
