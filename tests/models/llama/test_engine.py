import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.grammar_walk import call_of

from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.engine import EngineAnswer, LlamaEngine, Request, Sampler, ends_in_loop
from packetgate.models.llama.weights import LlamaWeights
from packetgate.state.errors import DecisionError

CELLS = 256
WIDE = 't{"t":"读文件 🙂🙃 né","u":"👩‍👩‍👧"}'


WIDE_FORM = call_of({"const": {"t": "读文件 🙂🙃 né", "u": "👩‍👩‍👧"}})
FIVE = {"form": call_of({"const": {"a": 5}}), "must_call": True}


@pytest.fixture(scope="module")
def engine(tiny_gguf: Path) -> LlamaEngine:
    return LlamaEngine(str(tiny_gguf), {"n_ctx": CELLS, "n_batch": 16})


def request(content: str = "Hello", max_tokens: int = 12, temperature: float = 0, **options: Any) -> Request:
    sampling = {"max_tokens": max_tokens, "temperature": temperature, "seed": 1}
    return Request([{"role": "user", "content": content}], sampling, **options)


def ask(engine: LlamaEngine, content: str = "Hello", max_tokens: int = 12, **options: Any) -> EngineAnswer:
    return engine.submit(request(content, max_tokens, **options)).result(timeout=60)


def broken(piece: str) -> None:
    raise LookupError(piece)


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (request("x" * 300), DecisionError),
        (request(on_text=broken), LookupError),
        (Request([{"role": "user", "content": "x"}], {"temperature": 0}), KeyError),
    ],
    ids=["too long", "broken listener", "no limit"],
)
def test_a_failed_request_does_not_affect_others(engine: LlamaEngine, failing: Request, error: type[Exception]):
    before = [ask(engine, content).text for content in ("Hello", "Good day")]
    with pytest.raises(error):
        engine.submit(failing).result(timeout=60)
    assert [ask(engine, content).text for content in ("Hello", "Good day")] == before


@dataclass(frozen=True)
class End:
    options: dict[str, Any]
    reason: str
    tokens: int


ENDS = {
    "limit": End({"max_tokens": 7}, "length", 7),
    "nothing wanted": End({"max_tokens": 0}, "length", 0),
    "context": End({"max_tokens": 5000, "temperature": 9.0}, "length", CELLS - 9),
    "form": End({**FIVE, "max_tokens": 50}, "stop", 8),
    "form, just": End({**FIVE, "max_tokens": 8}, "stop", 8),
    "form, cut off": End({**FIVE, "max_tokens": 7}, "length", 7),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_each_way_in_which_an_answer_ends(engine: LlamaEngine, case: End):
    answer = ask(engine, **case.options)
    assert (answer.finish_reason, len(answer.tokens), answer.input_tokens) == (case.reason, case.tokens, 9)


def test_cached_tokens_are_counted(engine: LlamaEngine):
    ask(engine, "something else")
    first, again, longer = (ask(engine, content) for content in ("Count me", "Count me", "Count me in"))
    assert (first.input_tokens, again.input_tokens, longer.input_tokens) == (12, 12, 15)
    assert again.cached_tokens == 11
    assert longer.cached_tokens == 2 + len("Count me")
    assert again.text == first.text


def test_characters_of_several_tokens_are_streamed_complete(engine: LlamaEngine):
    for limit in range(len(WIDE.encode())):
        pieces: list[str] = []
        answer = ask(engine, form=WIDE_FORM, must_call=True, max_tokens=limit, on_text=pieces.append)
        assert answer.text == "".join(pieces) == WIDE.encode()[:limit].decode(errors="ignore")
        assert set("".join(pieces)) <= set(WIDE)
        assert (len(answer.tokens), answer.finish_reason) == (limit, "length")


def test_requests_are_answered_in_order(engine: LlamaEngine):
    order: list[int] = []
    gate = threading.Event()
    first = engine.submit(request(on_text=lambda _: gate.wait(60) and None))
    futures = [engine.submit(request(f"{at}", on_text=lambda _, at=at: order.append(at))) for at in range(6)]
    left_out = futures.pop(2)
    assert left_out.cancel()
    gate.set()
    texts = [future.result(timeout=60).text for future in futures]
    assert first.result().text == ask(engine).text
    assert texts == [ask(engine, f"{at}").text for at in (0, 1, 3, 4, 5)]
    assert list(dict.fromkeys(order)) == [0, 1, 3, 4, 5]
    assert order == sorted(order)


def set_after(pieces: int, cancelled: threading.Event) -> Callable[[str], None]:
    seen: list[str] = []

    def on_text(piece: str) -> None:
        seen.append(piece)
        if len(seen) == pieces:
            cancelled.set()

    return on_text


@pytest.mark.parametrize("pieces", [0, 1, 3])
def test_a_cancelled_answer_has_the_written_text(engine: LlamaEngine, pieces: int):
    complete, cancelled = ask(engine, "Cancel me", 12).text, threading.Event()
    if not pieces:
        cancelled.set()
    answer = ask(engine, "Cancel me", 12, cancelled=cancelled, on_text=set_after(pieces, cancelled))
    assert (answer.finish_reason, answer.text, len(answer.tokens)) == ("cancelled", complete[:pieces], pieces)
    assert ask(engine, "Cancel me", 12).text == complete


@pytest.fixture
def context(weights: LlamaWeights) -> LlamaContext:
    context = LlamaContext(weights, {"n_ctx": 512})
    context.read([1, *range(70, 90)], threading.Event())
    return context


def sampled(context: LlamaContext, seed: int | None = 1, **sampling: Any) -> list[int]:
    """Return twenty tokens, each sampled from the same logits."""
    sampler = Sampler({**sampling, "seed": seed})
    return [sampler.sample(context) for _ in range(20)]


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 5.0, "top_p": 0.0}])
def test_temperature_zero_takes_the_most_likely_token(context: LlamaContext, sampling: dict[str, Any]):
    assert sampled(context, None, **sampling) == [int(context.logits.argmax())] * 20


def test_seeds_make_sampling_repeatable(context: LlamaContext):
    one, again, other = (sampled(context, seed, temperature=1.5) for seed in (7, 7, 8))
    assert one == again != other
    assert sampled(context, None, temperature=1.5) != sampled(context, None, temperature=1.5)


@pytest.mark.parametrize(
    ("tokens", "looped"),
    [
        ([1, 2, 3] * 16, True),
        ([9, 8, *[1, 2, 3, 4, 5] * 10], True),
        ([*range(20)] * 3, False),
        ([*range(20)] * 4, True),
        ([1, 2, 3] * 10, False),
        ([*[1, 2] * 40, 3], False),
        ([], False),
    ],
)
def test_a_loop_is_detected(tokens: list[int], looped: bool):
    assert ends_in_loop(tokens) is looped
