"""A past packet as one page that needs nothing else: no script, no font, no picture from anywhere."""

from functools import cache
from importlib.resources import files

from connectors.trace import sections
from connectors.trace.finding import Past
from connectors.trace.stages import timeline
from state.html.card import ANSWER, body, styles
from state.html.markup import Html, element, excerpt, name, stylesheet
from state.packet import CognitionPacket

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(past: Past) -> str:
    """Return the page as HTML."""
    packet = past.packet
    title = f"Packet {packet.header.packet_id[:8]}"
    head = (
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'),
        element("title", f"{title}: {excerpt(' '.join(packet.content.original_prompt.split()), 80)}"),
        styles(),
        _styles(),
    )
    whole = element(
        "main",
        element("h1", name(title)),
        element("h2", "At a glance", kind="unseen"),
        body(packet),
        _waiting(past),
        timeline(past),
        sections.calls(packet),
        sections.palette(packet),
        _whole_answer(packet),
        element("footer", "Made by packetgate trace. It holds what you said, and what tools and models answered."),
    )
    shown = element("html", element("head", *head), element("body", whole, kind="packetgate page"), lang="en")
    return f"<!doctype html>\n{shown.source}\n"


def _waiting(past: Past) -> Html | None:
    if past.question is None:
        return None
    question = past.question.get("question")
    asked = f": {excerpt(question, 2_000)}" if isinstance(question, str) and question else " for your approval."
    return element("p", element("strong", "This turn waits"), asked, kind="notice")


def _whole_answer(packet: CognitionPacket) -> Html | None:
    text = packet.response.candidate
    return element("section", element("h2", "Answer"), element("pre", text)) if len(text) > ANSWER else None


@cache
def _styles() -> Html:
    return stylesheet(files(__package__) / "page.css")
