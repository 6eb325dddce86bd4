"""A turn in LangGraph's streams, as a front end receives it."""

from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from support.graphs import Session

from packetgate.state.packet import CognitionPacket, TurnInput


@dataclass
class Streamed:
    """The stream content of a turn."""

    messages: list[AIMessage]
    """In the order they came, a chunk each."""
    modes: list[str]
    packet: CognitionPacket

    @property
    def chunks(self) -> list[str]:
        return [message.text for message in self.messages if message.text]

    @property
    def shown(self) -> dict[str | None, str]:
        """The text of each message, by id."""
        texts: dict[str | None, str] = {}
        for message in filter(lambda one: one.text, self.messages):
            texts[message.id] = texts.get(message.id, "") + message.text
        return texts


async def stream(talk: Session, text: str = "Hello") -> Streamed:
    """Run a turn, listening to three streams at once."""
    given = TurnInput(messages=[HumanMessage(text)])
    modes: Any = ["messages", "custom", "updates"]
    events = talk.graph.astream(given, talk.config, context=talk.context, stream_mode=modes)
    seen = [(mode, event) async for mode, event in events]
    messages = [event[0] for mode, event in seen if mode == "messages" and isinstance(event[0], AIMessage)]
    values = (await talk.graph.aget_state(talk.config)).values
    packet = CognitionPacket.model_validate({k: v for k, v in values.items() if k in CognitionPacket.model_fields})
    return Streamed(messages, [mode for mode, _ in seen], packet)
