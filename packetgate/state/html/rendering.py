"""A packet at a glance, by templates in which data cannot become markup: it is text, also what cannot be seen."""

import json
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Protocol
from unicodedata import category

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import JsonValue

from packetgate.state.base import ConfidenceSource, TokenUsage, shown_confidence
from packetgate.state.context import RoutingContext
from packetgate.state.printing import counted
from packetgate.state.routing import Risk, ToolRouting
from packetgate.state.sections import Intent, Metrics, PacketState, Response
from packetgate.state.transitions import ToolExecutionStatus

NAME = 120
GATE = RoutingContext().confidence_threshold
"""Where the gate stands unless a run was told otherwise; the packet does not say."""

_JOINERS = "\u200c\u200d"
"""Invisible, but scripts and emoji are spelt with them."""
_SOURCES = {
    ConfidenceSource.MEASURED: "measured from the model's token probabilities",
    ConfidenceSource.ENDPOINT: "the probability that a decision endpoint gave",
    ConfidenceSource.CALIBRATED: "a probability fitted to what came of such decisions",
    ConfidenceSource.STATED: "a number that the model stated",
    ConfidenceSource.RULE: "a score that a rule gave: nobody measured it",
    ConfidenceSource.UNJUDGED: "nobody judged it",
}
_TONES: dict[str, str] = {
    ToolExecutionStatus.EXECUTED: "good",
    ToolExecutionStatus.APPROVED: "info",
    ToolExecutionStatus.AWAITING_CONFIDENCE: "warn",
    ToolExecutionStatus.AWAITING_APPROVAL: "warn",
    ToolExecutionStatus.UNKNOWN: "warn",
    ToolExecutionStatus.FAILED: "bad",
    ToolExecutionStatus.USER_DENIED: "bad",
    PacketState.COMPLETED: "good",
    PacketState.PROCESSING: "info",
    PacketState.AWAITING_USER: "warn",
    Risk.READ: "good",
    Risk.WRITE: "warn",
    Risk.EXECUTE: "bad",
}


class Shown(Protocol):
    """A packet, of which the templates read all sections, and this module these."""

    @property
    def intent(self) -> Intent:
        """What the user wants."""

    @property
    def response(self) -> Response:
        """The answer."""

    @property
    def metrics(self) -> Metrics:
        """What it took."""

    @property
    def tool_routing(self) -> ToolRouting | None:
        """The calls; None where no tool was needed."""


def card(packet: Shown) -> str:
    """Return the packet as HTML that stands anywhere, light or dark, with its own styles. Blocking."""
    template = '{% import "card.html" as card %}{{ card.styles() }}{{ card.body(packet, facts) }}'
    return _environment().from_string(template).render(packet=packet, facts=facts(packet))


def facts(packet: Shown) -> list[str]:
    """Return what kind of turn it was and what it took."""
    took = sum(packet.metrics.latency_ms.values())
    tokens = sum(packet.metrics.token_usage.values(), start=TokenUsage())
    routing = packet.tool_routing
    told = [
        packet.intent.access.value if routing else "no tool needed" if packet.response.candidate else "",
        f"{routing.reinjection_count} of {routing.max_reinjections} reinjections" if routing else "",
        duration(took) if took else "",
        spent(tokens) if tokens != TokenUsage() else "",
    ]
    return [one for one in told if one]


def environment(loader: BaseLoader | None = None) -> Environment:
    """Return what renders the templates of a card, or those of `loader`, which may use a card's."""
    made = Environment(
        loader=loader or PackageLoader("packetgate.state.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_text,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "excerpt": excerpt,
        "name": name,
        "duration": duration,
        "sure": shown_confidence,
        "spent": spent,
        "value": value_text,
        "moment": _moment,
        "plain": lambda word: word.replace("_", " "),
        "tone": lambda word: _TONES.get(word, "calm"),
        "thousands": "{:,}".format,
        "counted": counted,
    }
    made.globals |= {"gate": GATE, "sources": _SOURCES}
    return made


def excerpt(text: str, most: int) -> str:
    """Return the beginning of a text, saying how much of it is left out."""
    text = text.strip()
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"


def name(text: str) -> str:
    """Return a text that is a name: a line, not longer than names are."""
    return excerpt(" ".join(text.split()), NAME)


def duration(milliseconds: float) -> str:
    """Return a time as people write it."""
    if milliseconds < 1_000:
        return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def spent(usage: TokenUsage) -> str:
    """Return how many tokens went in and came out."""
    cached = f" ({usage.cached_tokens:,} known)" if usage.cached_tokens else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out"


def value_text(value: JsonValue) -> str:
    """Return a value as one reads it: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def visible(text: str) -> str:
    """Return a text with what cannot be seen, or turns the writing around, as its number in brackets."""
    return "".join(map(_visible, text.replace("\r\n", "\n")))


def _text(value: Any) -> Any:
    """Return what a template writes for a value: nothing for None, and a text with nothing invisible in it."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else visible(str(value))


def _moment(at: datetime) -> str:
    """Return a time of day, to the millisecond."""
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"


_environment = cache(environment)


@lru_cache(4096)
def _visible(char: str) -> str:
    hidden = category(char) in {"Cc", "Cf", "Cs"} and char not in "\n\t" + _JOINERS
    return f"⟨U+{ord(char):04X}⟩" if hidden else char
