"""Signals for a tool and for a call, and the learned weights that turn them into probabilities.

`benchmarks/train` fits the files: `serving.json` weighs the signals for a tool and for a call of `reflex`,
`calls_judged.json` those for any call, and `practice.npz` classifies requests by built-in tool.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packetgate.reflex.meaning.encoder import vector_of
from packetgate.reflex.values.mentions import parse_request
from packetgate.reflex.weights import load_arrays
from packetgate.tools.learned import DIGITS, load_json, log_odds, logistic, weighted
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import stem_of
from packetgate.toolsets.builtin.tool import BUILT_IN

SIGNALS_FITTED = Path(__file__).with_name("serving.json")
CALL_SIGNALS_FITTED = Path(__file__).with_name("calls_judged.json")
PRACTICE_WEIGHTS = Path(__file__).with_name("practice.npz")
_MAX_CHARS = 2_000
VECTOR_SCALE = 3.0  # weight of a vector of length 1; words count 1 each
NO_TOOL = ""  # name of "no built-in tool"

Doubles = NDArray[np.float64]


class ToolSignals(NamedTuple):
    """Signals for and against a tool. Each weight in `serving.json` has the name of its signal."""

    always: float = 1.0  # constant: its weight is the intercept
    judged: float = 0.0  # log odds of the judge
    near: float = 0.0  # cosine of request and tool
    known: float = 0.0  # share of the request's terms that occur in the tool's texts
    named: float = 0.0  # share of the tool's name that the request contains
    place: float = 0.0  # 1 / rank
    verb: float = 0.0  # the name contains the request's verb or a synonym
    outright: float = 0.0  # the request contains the tool's name
    path: float = 0.0  # the request names a file, and the tool takes one
    implied: float = 0.0  # the request only names a file, and the tool reads
    answers: float = 0.0  # the request is a question, and the tool only needs a query
    practised: float = 0.0  # log odds of the classifier of requests; 0 if the tool is not built in
    below: float = 0.0  # the request asks for a change, and the tool only reads
    otherwise: float = 0.0  # the request asks for a change, and the tool's name does not contain its verb
    lacking: float = 0.0  # missing required arguments; at most 3
    certain: float = 0.0  # mean log probability of the arguments
    left: float = 0.0  # unused values of the request; at most 3
    advice: float = 0.0  # the request asks how or why, and names no value


class ReflexCallSignals(NamedTuple):
    """Signals for a call that `reflex` selected. Each weight in `serving.json` has the name of its signal."""

    always: float = 1.0  # constant: its weight is the intercept
    share: float = 0.0  # log odds of its tool
    arguments: float = 0.0  # log probability of its arguments
    practised: float = 0.0  # its tool is built in
    filled: float = 0.0  # number of arguments; at most 6
    left: float = 0.0  # unused values; at most 3
    spare: float = 0.0  # other unused mentions; at most 3
    unexplained: float = 0.0  # share of terms that occur neither in the tool's texts nor in an argument
    named: float = 0.0  # optional arguments that the request names and the call leaves out; at most 3
    words: float = 0.0  # log of the number of words
    there: float = 0.0  # a path among its arguments exists
    right: float = 0.0  # log odds of the judge that the call is right


class CallSignals(NamedTuple):
    """Signals for any call. Each weight in `calls_judged.json` has the name of its signal."""

    always: float = 1.0  # constant: its weight is the intercept
    share: float = 0.0  # log probability of its tool
    rival: float = 0.0  # probability of the best other tool
    worst: float = 0.0  # lowest log probability of a value
    omitted: float = 0.0  # log probability that the omitted parameters are to be omitted
    unread: float = 0.0  # values from the user's words that were not read from the request
    invented: float = 0.0  # required values that no source contains
    added: float = 0.0  # optional values that no source contains
    switched: float = 0.0  # optional booleans and choices that no source contains
    left: float = 0.0  # mentions that no value contains
    unexplained: float = 0.0  # share of terms that occur neither in the tool's texts nor in an argument
    words: float = 0.0  # log of the number of words
    right: float = 0.0  # log odds of the judge that the call is right


class SignalWeights(NamedTuple):
    """The weights of the signals for a tool (`serving`) and for a call of `reflex` (`sureness`)."""

    serving: ToolSignals
    sureness: ReflexCallSignals


def serving_probabilities(candidates: Sequence[ToolSignals], weights: SignalWeights | None = None) -> list[float]:
    """Return the probability that each tool serves the request; the remaining probability is that no tool does."""
    scores = [serving_log_odds(signals, weights) for signals in candidates]
    highest = max([0.0, *scores])
    powers = [math.exp(score - highest) for score in scores]
    total = math.exp(-highest) + sum(powers)
    return [round(power / total, DIGITS) for power in powers]


def serving_log_odds(signals: ToolSignals, weights: SignalWeights | None = None) -> float:
    """Return the log odds that this tool, rather than no tool, serves the request."""
    return weighted(signals, (weights or load_signal_weights()).serving)


def reflex_call_probability(signals: ReflexCallSignals, weights: SignalWeights | None = None) -> float:
    """Return the probability that a call that `reflex` selected is right."""
    return logistic(signals, (weights or load_signal_weights()).sureness)


def call_log_odds(signals: CallSignals) -> float:
    """Return the log odds that a call is right, whichever decider selected it."""
    return log_odds(logistic(signals, load_call_weights()))


@cache
def load_signal_weights() -> SignalWeights:
    """Return the shipped weights. Raise WeightsError if the file is missing or broken."""
    return load_json(
        SIGNALS_FITTED,
        lambda content: SignalWeights(ToolSignals(**content["serving"]), ReflexCallSignals(**content["sureness"])),
    )


@cache
def load_call_weights() -> CallSignals:
    """Return the shipped weights. Raise WeightsError if the file is missing or broken."""
    return load_json(CALL_SIGNALS_FITTED, lambda content: CallSignals(**content))


@dataclass(frozen=True)
class RequestClassifier:
    """A linear model that gives the probability that a request asks for each built-in tool."""

    tools: tuple[str, ...]
    words: Mapping[str, int]  # row of each word
    table: Doubles  # rows: components of the request's vector, words, and a constant; columns: tools

    def probabilities(self, text: str) -> dict[str, float]:
        """Return the probability of each tool. Blocking."""
        scores = (request_features(text, self.words) @ self.table).round(DIGITS)
        powers = np.exp(scores - scores.max())
        return dict(zip(self.tools, (powers / powers.sum()).tolist(), strict=True))


def builtin_log_odds(text: str, spec: ToolSpec) -> float:
    """Return the log odds that a request asks for a built-in tool; 0 for other tools."""
    return log_odds(_probabilities(text)[spec.name]) if is_known_builtin(spec) else 0.0


def is_known_builtin(spec: ToolSpec) -> bool:
    """Return whether a tool is a built-in tool that the classifier of requests knows."""
    return spec.server_digest.startswith(BUILT_IN) and spec.name in load_request_classifier().tools


def word_features(text: str) -> Iterator[str]:
    """Yield the word features of a request: stems or kinds of tokens, their pairs, the first of them, and `?`."""
    words = [
        stem_of(token.text.lower()) if token.kind == "word" else f"<{token.kind}>"
        for token in parse_request(text).tokens
    ]
    yield from words
    yield from (f"{first} {second}" for first, second in pairwise(words))
    yield from (f"^{first}" for first in words[:1])
    yield from ["?"] * ("?" in text)


def request_features(text: str, words: Mapping[str, int]) -> Doubles:
    """Return the numeric features of a request: its scaled vector, a flag for each known word feature, and 1."""
    text = text[:_MAX_CHARS]
    flags = np.zeros(len(words) + 1)
    flags[[words[word] for word in word_features(text) if word in words]] = 1
    flags[-1] = 1
    return np.concatenate([VECTOR_SCALE * vector_of(text), flags])


@lru_cache(maxsize=256)
def _probabilities(text: str) -> Mapping[str, float]:
    return load_request_classifier().probabilities(text)


@cache
def load_request_classifier() -> RequestClassifier:
    """Return the shipped classifier. Raise WeightsError if its file is missing or broken."""
    arrays = load_arrays(PRACTICE_WEIGHTS)
    rows = {str(word): row for row, word in enumerate(arrays["words"])}
    return RequestClassifier(tuple(map(str, arrays["tools"])), rows, arrays["table"].astype(np.float64))
