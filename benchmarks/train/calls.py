"""Fit the probability that a call is right, on right calls and on wrong calls like those of models.

The data are the requests of our own held-out catalogues. Each request has the right call, the call of the reflex, and
corrupted right calls: another tool, an additional or missing argument, a value that is too long or too short, or
swapped values. If no tool fits, every call is wrong.
"""

import json
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command_line import command_parser
from benchmarks.selection.figures import Call, auroc, same
from benchmarks.train.logistic import Bounds, Logistic
from benchmarks.train.own import catalogues
from packetgate.deciders.packets import facts_of
from packetgate.reflex.calls import call_signals
from packetgate.reflex.fit import best_fits
from packetgate.reflex.signals import CALL_SIGNALS_FITTED, CallSignals
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Content, Context
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import repair_and_validate
from packetgate.tools.spec.tool_spec import ToolSpec

SEED = 5
NOW = datetime(2026, 5, 6, 9, tzinfo=UTC)
PULL = 0.5
"""Strength of the regularisation of the weights towards 0, in calls."""
CORRUPTIONS = 4
"""Ways to corrupt a right call."""
AGAINST = frozenset({"rival", "unread", "invented", "added", "switched", "left", "unexplained"})
FREE = frozenset({"always", "words"})


class Example(NamedTuple):
    """A call for a request, and whether it is right."""

    source: str
    signals: CallSignals
    right: bool


def main() -> None:
    """Collect the calls, fit the weights, print the metrics, and write the weights."""
    parser = command_parser("benchmarks.train.calls", __doc__)
    parser.add_argument("--most", type=int, default=70, help="number of requests of each catalogue")
    parser.add_argument("--kept", type=Path, help="file to store the signals in, so that a second fit is fast")
    args = parser.parse_args()
    if args.kept and args.kept.exists():
        held = json.loads(args.kept.read_text())
        examples = [Example(source, CallSignals(*signals), right) for source, signals, right in held]
    else:
        examples = [*_examples(args.most)]
        if args.kept:
            args.kept.write_text(json.dumps(examples))
    fit(examples)


def fit(examples: list[Example]) -> None:
    """Fit the weights, print their metrics on left-out sources, and write them."""
    inputs, right = np.array([one.signals for one in examples]), np.array([float(one.right) for one in examples])
    groups = np.array([one.source for one in examples])
    logistic = Logistic([0.0] * inputs.shape[1], [*map(_bounds, CallSignals._fields)], PULL)
    sure = logistic.left_out(inputs, right, groups)
    area = auroc([*sure[right == 1]], [*sure[right == 0]])
    print(f"{len(examples)} calls, {right.mean():.2f} right; each source left out: AUROC {area:.3f}")
    weights = logistic.fitted(inputs, right)
    held = {name: round(float(one), 4) for name, one in zip(CallSignals._fields, weights, strict=True)}
    print(held)
    CALL_SIGNALS_FITTED.write_text(json.dumps(held, indent=2) + "\n", encoding="utf-8")


def _bounds(name: str) -> Bounds:
    if name in FREE:
        return None, None
    return (None, 0.0) if name in AGAINST else (0.0, None)


def _examples(most: int) -> Iterator[Example]:
    random.seed(SEED)
    for own in catalogues(held_out=True):
        catalogue = Catalogue(own.tools.values())
        for request in random.sample(own.requests, min(most, len(own.requests))):
            wanted = Call(name=request.tool, arguments=dict(request.arguments)) if request.tool else None
            for call in _calls(request.text, wanted, catalogue):
                if repair_and_validate(
                    call.name, call.arguments or {}, frozenset(catalogue), catalogue, words=""
                ).problems:
                    continue
                right = wanted is not None and call.name == wanted.name
                right = right and same(call.arguments or {}, {k: [v] for k, v in request.arguments.items()})
                yield Example(own.name, _signals(request.text, call, catalogue), right)


def _signals(text: str, call: Call, catalogue: Catalogue) -> CallSignals:
    packet = CognitionPacket(content=Content(original_prompt=text), context=Context(), tool_routing=ToolRouting())
    made = facts_of(packet, catalogue).traced_call(catalogue[call.name], call.arguments or {})
    return call_signals(made, packet, catalogue)


def _calls(text: str, wanted: Call | None, catalogue: Catalogue) -> Iterator[Call]:
    """Yield different calls for a request."""
    fits = best_fits(text, catalogue, NOW)
    found = [Call(name=fit.spec.name, arguments=dict(fit.fillings[0].params)) for fit in fits[:2]]
    found += [_with_guesses(one, catalogue[one.name], text) for one in found]
    if wanted:
        found += [wanted, *(_mutated(wanted, catalogue[wanted.name], text) for _ in range(CORRUPTIONS))]
        other = random.choice([name for name in catalogue if name != wanted.name])
        found.append(_with_guesses(Call(name=other, arguments={}), catalogue[other], text))
    yield from {one.model_dump_json(): one for one in found}.values()


def _with_guesses(call: Call, spec: ToolSpec, text: str) -> Call:
    """Return the call with guesses for missing required arguments, and sometimes an additional argument."""
    more = {name: _guess(spec.parameters.get(name, {}), text) for name in spec.required if name not in call.arguments}
    optional = [name for name in spec.parameters if name not in spec.required and name not in call.arguments]
    for name in random.sample(optional, min(len(optional), random.choice([0, 1, 1, 2]))):
        more[name] = _guess(spec.parameters[name], text)
    return Call(name=call.name, arguments={**call.arguments, **more})


def _guess(schema: Mapping[str, Any], text: str) -> Any:
    """Return a value that a small model might invent."""
    if "enum" in schema:
        return random.choice(schema["enum"])
    kind, words = schema.get("type"), text.split()
    if kind == "boolean":
        return random.choice([True, False])
    if kind in {"integer", "number"}:
        return random.choice([1, 5, 10, 20, 100])
    if kind == "array":
        return [_guess(schema.get("items", {}), text)]
    at, size = random.randrange(len(words)), random.choice([1, 2, 3])
    made_up = random.choice(["general", "New York", "2023-10-01", "example", "all", "user123", "docs/plan.md"])
    return random.choice([" ".join(words[at : at + size]), made_up])


def _mutated(call: Call, spec: ToolSpec, text: str) -> Call:
    """Return the call with one error, if possible."""
    arguments = dict(call.arguments or {})
    texts = {name: value for name, value in arguments.items() if isinstance(value, str) and value}
    way = random.choice(["more", "more", "less", "longer", "shorter", "swapped", "number"])
    optional = [name for name in spec.parameters if name not in spec.required and name not in arguments]
    if way == "more" and optional:
        name = random.choice(optional)
        arguments[name] = _guess(spec.parameters[name], text)
    elif way == "less" and (args := [name for name in arguments if name not in spec.required]):
        del arguments[random.choice(args)]
    elif way in {"longer", "shorter"} and texts:
        name = random.choice([*texts])
        arguments[name] = _longer(texts[name], text) if way == "longer" else _shorter(texts[name])
    elif way == "swapped" and len(texts) > 1:
        one, other = random.sample([*texts], 2)
        arguments[one], arguments[other] = arguments[other], arguments[one]
    elif way == "number":
        for name, value in arguments.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                arguments[name] = value + random.choice([-1, 1, 10])
                break
    return Call(name=call.name, arguments=arguments)


def _longer(value: str, text: str) -> str:
    """Append a word to a value: the next word of the text, if the text contains the value."""
    before, found, after = text.partition(value)
    beside = [f"{word} {value}" for word in before.split()[-1:]] + [f"{value} {word}" for word in after.split()[:1]]
    return random.choice(beside) if found and beside else f"{value} {text.split(maxsplit=1)[0]}"


def _shorter(value: str) -> str:
    words = value.split()
    return " ".join(random.choice([words[1:], words[:-1]])) if len(words) > 1 else value[:-1]


if __name__ == "__main__":
    main()
