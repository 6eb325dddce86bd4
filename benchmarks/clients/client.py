"""Define a client, and the features that every client is tested for."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clients.place import Place
from packetgate.state.errors import InputError

FEATURES = {
    "answer": "the first message is answered from a file",
    "second turn": "the next message goes on with the same conversation",
    "approval": "a write waits for approval, and runs after it",
    "edit": "a call that waits is edited, and runs as edited",
    "reject": "a call that waits is rejected, and does not run",
    "question": "a question in words is answered",
    "responses": "the same by `/v1/responses`, streamed",
    "client tools": "requests that carry the client's own tools are answered",
    "system prompt": "the client's system prompt reaches the model",
    "background": "titles, tags and suggestions are answered with no tool and no question",
}
"""Maps each feature to the label of its table row."""

ASK = 'Append "Post the letter" to plan.txt'
REPLIES = {
    "approval": ("yes", "Post the letter"),
    "edit": ('edit {"path": "plan.txt", "text": "Feed the cat"}', "Feed the cat"),
    "reject": ("no", ""),
}
"""Maps each reply to the line that it adds to the file; empty if the file stays unchanged."""


@dataclass(frozen=True)
class Client:
    """A client, with functions that install and drive it."""

    name: str
    package: str
    """The client's source, such as `PyPI open-webui`."""
    install: Callable[[Path], str]
    """Installs the client into a folder, and returns its version; raises `UnavailableError`."""
    drive: Callable[[Place], Iterator[tuple[str, bool | str]]]
    """Yields True for each feature that works; otherwise False, or a text with the reason."""


def replied(place: Place, say: Callable[[str], str]) -> Iterator[tuple[str, bool | str]]:
    """For a client whose replies are messages, yield whether a write waits and whether each reply works."""
    plan = place.work / "plan.txt"
    for feature, (reply, line) in REPLIES.items():
        before = plan.read_text()
        asked = say(ASK)
        waits = "(question " in asked and plan.read_text() == before
        done = say(reply)
        added = plan.read_text().removeprefix(before).strip()
        yield feature, (waits and added == line) or f"{asked} {done}"


def checked(features: Iterator[tuple[str, bool | str]]) -> Mapping[str, str]:
    """Return `yes` or the problem for each feature that a driver yields; an exception becomes the last entry."""
    found: dict[str, str] = {}
    try:
        for feature, works in features:
            found[feature] = "yes" if works is True else f"no: {works}" if works else "no"
    except InputError as error:
        found["driven to the end"] = f"no: {error}"
    return found
