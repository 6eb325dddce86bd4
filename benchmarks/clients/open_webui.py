"""Drive the chat front end Open WebUI: send its server the requests of its page, with titles, tags and follow-ups.

The benchmark installs it without PyTorch and the packages that need PyTorch (local embeddings, speech). Chats use none.
"""

import json
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.clients.client import Client, replied
from benchmarks.clients.model import NEXT, TAG, TITLE
from benchmarks.clients.place import Place, free_port, from_pypi, running
from packetgate.state.errors import InputError

HEAVY = (
    "accelerate", "colbert-ai", "einops", "faster-whisper", "opencv-python-headless", "playwright", "pypandoc",
    "rapidocr", "sentence-transformers",
)  # fmt: skip
"""Requirements of Open WebUI that install PyTorch and that chats do not need."""
PATIENCE_S = 120


def install(folder: Path) -> str:
    """Install the client without packages that need PyTorch, and return its version."""
    overrides = folder.with_name("open-webui-overrides.txt")
    overrides.parent.mkdir(parents=True, exist_ok=True)
    overrides.write_text("".join(f"{name}; sys_platform == 'never'\n" for name in HEAVY))
    return from_pypi("open-webui", folder, "--overrides", str(overrides), "open-webui")


@dataclass
class Page:
    """The state of a chat's page, and its requests."""

    url: str
    token: str = ""
    chat: str = ""
    last: str | None = None
    """The id of the last answer."""
    said: list[dict[str, str]] = field(default_factory=list)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send a JSON request to the server, and return its answer."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=60) as answer:
            return json.loads(answer.read())

    def open(self) -> None:
        """Sign in, and start a chat."""
        self.token = self.call("/api/v1/auths/signin", {"email": "", "password": ""})["token"]
        blank = {"title": "New Chat", "models": ["packetgate"], "history": {"messages": {}, "currentId": None}}
        self.chat = self.call("/api/v1/chats/new", {"chat": blank})["id"]

    def say(self, words: str, *, first: bool = False) -> str:
        """Send a message, wait until the server has stored the answer, and return it."""
        user, answer = str(uuid4()), str(uuid4())
        self.said.append({"role": "user", "content": words})
        message = {"id": user, "parentId": self.last, "childrenIds": [answer], "role": "user", "content": words}
        background = {"title_generation": first, "tags_generation": first, "follow_up_generation": True}
        self.call(
            "/api/chat/completions",
            {
                "stream": True,
                "model": "packetgate",
                "messages": [{"role": "system", "content": "Speak like a pirate."}, *self.said],
                "params": {},
                "features": {},
                "chat_id": self.chat,
                "id": answer,
                "parent_id": user,
                "user_message": message,
                "session_id": str(uuid4()),
                "background_tasks": background,
            },
        )
        stored = self.until(lambda: self._stored(answer), f"an answer to {words!r}")
        self.last = answer
        self.said.append({"role": "assistant", "content": stored["content"]})
        return str(stored["content"])

    def _stored(self, message: str) -> dict[str, Any] | None:
        found = self.call(f"/api/v1/chats/{self.chat}")["chat"]["history"]["messages"].get(message, {})
        return found if found.get("done") else None

    def until(self, wanted: Any, what: str) -> Any:
        """Wait until `wanted` returns a result, and return it.

        Raises:
            InputError: `wanted` returned no result in time.
        """
        ends = time.monotonic() + PATIENCE_S
        while not (found := wanted()):
            if time.monotonic() > ends:
                raise InputError(f"Open WebUI has not stored {what}")
            time.sleep(0.3)
        return found

    def background_texts(self) -> tuple[Any, Any, Any]:
        """Return the chat's title, its tags, and the suggestions under the last answer."""
        chat = self.call(f"/api/v1/chats/{self.chat}")
        last = chat["chat"]["history"]["messages"].get(self.last, {})
        return chat["title"], chat.get("meta", {}).get("tags"), last.get("followUps")


def drive(place: Place) -> Iterator[tuple[str, bool | str]]:
    """Yield the result of each feature."""
    with place.serve() as url:
        variables = {
            "DATA_DIR": str(place.folder / "open-webui"),
            "WEBUI_AUTH": "False",
            "WEBUI_SECRET_KEY": "none",
            "OFFLINE_MODE": "True",
            "ENABLE_OLLAMA_API": "False",
            "OPENAI_API_BASE_URL": url,
            "OPENAI_API_KEY": "none",
            "RAG_EMBEDDING_ENGINE": "openai",
        }
        port = str(free_port())
        program = [str(place.installed / "bin" / "open-webui"), "serve", "--host", "127.0.0.1", "--port", port]
        log, ready = place.folder / "open-webui.log", "scheduler_worker_loop|Application startup complete"
        with running(program, place.folder, variables, log=log, ready=ready, within=600):
            page = Page(f"http://127.0.0.1:{port}")
            page.open()
            yield from _features(place, page)


def _features(place: Place, page: Page) -> Iterator[tuple[str, bool | str]]:
    first = page.say("What does plan.txt say?", first=True)
    yield "answer", "Call Ann" in first or first
    yield "client tools", "Call Ann" in first or first
    yield "system prompt", place.model.has_system_words("pirate")
    right = (TITLE, [TAG], [NEXT])
    try:
        page.until(lambda: page.background_texts() == right, "titles, tags and follow-ups")
    except InputError:
        yield "background", str(page.background_texts())
    else:
        sessions = place.sessions()
        yield "background", sessions == 1 or f"{sessions} conversations"
    second = page.say("And what does later.txt say?")
    yield "second turn", ("Water the plants" in second and place.sessions() == 1) or second
    yield from replied(place, page.say)


OPEN_WEBUI = Client("Open WebUI", "PyPI open-webui", install, drive)
