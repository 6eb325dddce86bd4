"""Build agent-chat-ui, LangChain's web chat for LangGraph servers, from its repository, and drive it in Chromium.

One thread holds all turns, because earlier messages decide whether the page shows a card.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.clients.client import Client
from benchmarks.clients.model import ADD
from benchmarks.clients.place import Place, UnavailableError, free_port, run, running
from packetgate.state.errors import InputError

REPOSITORY = "https://github.com/langchain-ai/agent-chat-ui"
BUILD_S = 900
SHOWN_S = 60
CHROMIUM = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,1400")
FONTS = "module.exports = new Proxy({}, {get: () => \"@font-face{font-family:'Inter';src:local('sans-serif')}\"})"
"""Replaces the fonts that the build would download from Google."""
BUTTON = "return [...document.querySelectorAll('button')].find(one => one.innerText.trim() === arguments[0]) || null"
FIELD = """
const labels = [...document.querySelectorAll('p')].filter(one => one.innerText.trim() === arguments[0]);
return labels.length ? labels.at(-1).parentElement.querySelector('textarea') : null;
"""
MESSAGE = "return document.querySelector('textarea[placeholder=\"Type your message...\"]')"


def install(folder: Path) -> str:
    """Clone and build the client unless it is installed, and return its commit.

    Raises:
        UnavailableError: a program is missing, or the repository or its packages cannot be reached.
    """
    for program in ("git", "node", "npx", "chromium", "chromedriver"):
        if shutil.which(program) is None:
            raise UnavailableError(f"{program} is not installed")
    app = folder / "app"
    try:
        if not (app / ".next" / "BUILD_ID").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            run(["git", "clone", "--depth", "1", REPOSITORY, str(app)], folder, {})
            (folder / "fonts.js").write_text(FONTS)
            variables = {"NEXT_TELEMETRY_DISABLED": "1", "NEXT_FONT_GOOGLE_MOCKED_RESPONSES": str(folder / "fonts.js")}
            manager = json.loads((app / "package.json").read_text())["packageManager"]
            run(["npx", "-y", manager, "install", "--frozen-lockfile"], app, variables, within=BUILD_S)
            run(["npx", "next", "build"], app, variables, within=BUILD_S)
        return run(["git", "rev-parse", "--short", "HEAD"], app, {}).strip()
    except InputError as error:
        raise UnavailableError(str(error)) from error


class Page:
    """The chat page in a browser window."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def say(self, words: str) -> None:
        """Send a message when the page accepts input."""
        self.waits_for("Send")
        self._driver.execute_script(MESSAGE).send_keys(words, "\n")

    def fill(self, label: str, words: str) -> None:
        """Replace the content of a card's field."""
        field = self.until(lambda: self._find(FIELD, label), f"a field {label!r}")
        field.send_keys("\ue009", "a", "\ue000", words)  # Ctrl and A, then the words

    def press(self, label: str) -> None:
        """Press a button when it appears."""
        self._driver.execute_script("arguments[0].click()", self.waits_for(label))

    def waits_for(self, label: str) -> Any:
        """Wait for a button, and return it."""
        return self.until(lambda: self._find(BUTTON, label), f"a button {label!r}")

    def sees(self, words: str) -> None:
        """Wait until the page shows a text."""
        self.until(lambda: words in self._driver.execute_script("return document.body.innerText"), repr(words))

    def until(self, found: Callable[[], Any], what: str) -> Any:
        """Wait until `found` returns an element, and return it.

        Raises:
            InputError: `found` returned no element in time.
        """
        until = time.monotonic() + SHOWN_S
        while not (one := found()):
            if time.monotonic() > until:
                shown = self._driver.execute_script("return document.body.innerText")
                raise InputError(f"the page does not show {what}: {shown[-300:]}")
            time.sleep(0.1)
        return one

    def _find(self, script: str, label: str) -> Any:
        return self._driver.execute_script(script, label)


@contextmanager
def opened(place: Place) -> Iterator[Page]:
    """Open the chat on a LangGraph server that serves Packetgate's graph, with writes enabled."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    port, web = free_port(), free_port()
    server = f"http://127.0.0.1:{port}"
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (*CHROMIUM, f"--user-data-dir={place.folder / 'profile'}"):
        options.add_argument(argument)
    command = ["node", "node_modules/next/dist/bin/next", "start", "-H", "127.0.0.1", "-p", str(web)]
    log = place.folder / "agent-chat-ui.log"
    with (
        place.packetgate("studio", "--port", str(port), ready="Application started up"),
        running(command, place.installed / "app", {}, log=log, ready="Ready in"),
    ):
        given = {"graph_id": "packetgate", "context": {"allow_write_tools": True}}
        assistant = httpx.post(f"{server}/assistants", json=given).raise_for_status().json()["assistant_id"]
        driver = Chrome(options, Service(shutil.which("chromedriver")))
        try:
            driver.get(f"http://127.0.0.1:{web}/?apiUrl={server}&assistantId={assistant}")
            yield Page(driver)
        finally:
            driver.quit()


def drive(place: Place) -> Iterator[tuple[str, bool | str]]:
    """Yield the result of each feature."""
    plan = place.work / "plan.txt"
    with opened(place) as page:
        page.say("What does plan.txt say?")
        page.sees("Call Ann")
        yield "answer", True
        page.say("And what does later.txt say?")
        page.sees("Water the plants")
        yield "second turn", True
        page.say('Append "Post the letter" to plan.txt')
        page.waits_for("Approve")
        waits = "letter" not in plan.read_text()
        page.press("Approve")
        page.until(lambda: "Post the letter" in plan.read_text(), "the line that an approved call writes")
        yield "approval", waits
        page.say('Append "Feed the cat" to plan.txt')
        page.fill("Text", "Feed the dog")
        page.press("Submit")
        page.until(lambda: "Feed the dog" in plan.read_text(), "the line that an edited call writes")
        yield "edit", "cat" not in plan.read_text()
        page.say('Append "Sell the car" to plan.txt')
        page.fill("Reason", "not now")
        page.press("Submit rejection")
        page.sees("The user said: not now")
        yield "reject", "car" not in plan.read_text()
        page.say(f"{ADD} plan.txt")
        page.fill("Answer", 'Append "Ring Bob"')
        page.press("Submit")
        page.press("Approve")
        page.until(lambda: "Ring Bob" in plan.read_text(), "the file that the answered call writes")
        yield "question", True


AGENT_CHAT_UI = Client("agent-chat-ui", "GitHub langchain-ai/agent-chat-ui", install, drive)
