"""Every failure of an endpoint yields, in bounded time, one line that names the failure and a fix."""

import asyncio
from dataclasses import dataclass

import pytest
from support.openai_models import GOOD, ask_tools
from support.scripted_openai import ScriptedOpenAI, free_port
from support.scripted_replies import CutOff, HttpError, Message, Raw, Reply, Stall

from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.models.transport import MAX_RETRIES
from packetgate.state.errors import DecisionError

KEY = "sk-very-secret-key"


async def ask(base_url: str, seconds: float = 10) -> str:
    chat = await asyncio.to_thread(connect, "scripted", Endpoint(base_url, KEY, timeout=seconds))
    return (await ask_tools(OpenAICompatible(chat))).text


@dataclass(frozen=True)
class Failure:
    """The server's reply, and the error message."""

    reply: Reply
    message: str
    requests: int = 1


FAILURES = [
    Failure(HttpError(401, f"wrong key {KEY}"), "refuses the API key .HTTP 401.: check OPENAI_API_KEY"),
    Failure(HttpError(403, f"not for {KEY}"), r"HTTP 403.*not for \*\*\*; check OPENAI_API_KEY"),
    Failure(HttpError(404, "no such model"), "HTTP 404.*no such model; check the model's name and the base URL"),
    Failure(HttpError(429, "slow down"), "HTTP 429.*slow down; too many requests"),
    Failure(HttpError(500, "boom", retry=True), "HTTP 500.*boom; try again later, or check", 1 + MAX_RETRIES),
    Failure(HttpError(500, body={"detail": ["out of memory"]}), "HTTP 500.*out of memory"),
    Failure(Raw("not JSON"), "check that the base URL .* ends in /v1"),
    Failure(Raw('{"choices": []}'), "check that the base URL"),
    Failure(Raw('{"choices": [{"message": {"role": "user", "content": "{}"}}]}'), "check that the base URL"),
    Failure(Raw('{"choices": [{"message": {"role": "assistant", "tool_calls": 7}}]}'), "check that the base URL"),
    Failure(Raw('{"error": {"message": "no provider left"}}'), "check that the base URL"),
    Failure(Raw(GOOD, headers={"content-encoding": "gzip"}), "not HTTP: check the server", 1 + MAX_RETRIES),
    Failure(CutOff(GOOD), "closed the connection", 1 + MAX_RETRIES),
    Failure(
        Message({"content": None, "refusal": f"I won't, {KEY}"}),
        r"refuses to answer: I won't, \*\*\*; reword the request, or use another model",
    ),
    Failure(Message({"content": '{"appr'}, "content_filter"), "content filter; reword the request"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: str(failure.reply)[:80])
async def test_errors_are_one_line(failure: Failure, scripted_openai: ScriptedOpenAI, quick_retries: None):
    scripted_openai.script(*[failure.reply] * 9)
    with pytest.raises(DecisionError, match=failure.message) as caught:
        await ask(scripted_openai.base_url)
    message = str(caught.value)
    assert message.startswith(f"scripted at {scripted_openai.base_url} ")
    assert "\n" not in message
    assert KEY[:8] not in message
    assert len(message) < 500
    assert len(scripted_openai.requests) == failure.requests


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the library's wait of half a second before its first retry."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)


@pytest.mark.parametrize("status", [408, 429, 503])
async def test_temporary_errors_are_retried(status: int, scripted_openai: ScriptedOpenAI, quick_retries: None):
    scripted_openai.script(HttpError(status, retry=True), HttpError(status, retry=True, retry_after="0.01"), GOOD)
    assert await ask(scripted_openai.base_url) == GOOD
    counts = [headers["x-stainless-retry-count"] for headers in scripted_openai.headers]
    assert counts == ["0", "1", "2"]


async def test_a_refused_connection_is_reported(quick_retries: None):
    base_url = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(DecisionError, match=f"scripted at {base_url} cannot be reached: check that the server runs"):
        await ask(base_url)


@pytest.mark.parametrize("reply", [Stall(), Stall('{"appr'), Stall(drip=True)], ids=["silent", "in mid-body", "drips"])
async def test_a_stalled_server_times_out(reply: Reply, scripted_openai: ScriptedOpenAI, quick_retries: None):
    scripted_openai.script(*[reply] * 9)
    with pytest.raises(DecisionError, match="did not answer in time: raise PACKETGATE_MODEL_TIMEOUT"):
        await ask(scripted_openai.base_url, seconds=0.3)
    assert len(scripted_openai.requests) == 1
