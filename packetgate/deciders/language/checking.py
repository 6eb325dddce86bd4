"""Whether a call is right, by a model: yes or no, asked as worked examples, and how probable it finds its yes."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.deciders.language.prompting import data, harmless
from packetgate.models.calling import Odds
from packetgate.models.model import Model
from packetgate.prompts.rendering import render
from packetgate.state.printing import compact_json
from packetgate.tools.spec.tool_spec import ToolSpec

YES, NO = "yes", "no"
BRIEF_CHARS = 300
"""Of what a tool says of itself."""

WORKED: Sequence[tuple[str, str, str, dict[str, Any], str]] = (
    (
        "Play some jazz in the kitchen, not too loud: 30 percent.",
        "play_music",
        "Plays music in a room.",
        {"genre": "jazz", "room": "kitchen", "volume": 30},
        YES,
    ),
    (
        "Which of my meetings on 4 June can be moved?",
        "add_meeting",
        "Adds a meeting to the calendar.",
        {"title": "meeting", "date": "4 June"},
        NO,
    ),
    (
        "How do bees find their way home?",
        "search_flights",
        "Finds flights between two airports.",
        {"origin": "home", "destination": "bees"},
        NO,
    ),
    (
        "Convert 12 miles to kilometres",
        "convert_length",
        "Converts a length to another unit.",
        {"value": 12, "from": "miles", "to": "kilometres"},
        YES,
    ),
    (
        "Remind me at 8 to water the plants",
        "set_reminder",
        "Sets a reminder.",
        {"text": "water the plants", "time": "20:30"},
        NO,
    ),
)
"""Requests and calls, each with whether the call is right."""


async def odds_of(model: Model, request: str, spec: ToolSpec, params: Mapping[str, Any]) -> Odds:
    """Return how probably the model says yes to a call, and no.

    Raises:
        DecisionError: the model cannot be asked.
    """
    asked = _asked(data(request), spec.name, harmless(spec.brief[:BRIEF_CHARS]), params)
    return await model.odds([SystemMessage(render("check_system")), *_worked(), HumanMessage(asked)], (YES, NO))


def _worked() -> list[BaseMessage]:
    messages: list[BaseMessage] = []
    for request, name, brief, params, verdict in WORKED:
        messages += [HumanMessage(_asked(data(request), name, brief, params)), AIMessage(verdict)]
    return messages


def _asked(request: str, name: str, brief: str, params: Mapping[str, Any]) -> str:
    return render(
        "check_user", request=request, tool=f"{name}: {brief}", call=harmless(f"{name}({compact_json(dict(params))})")
    )
