"""What of a call is taken from the request: values that are not are left out where they may be, or objected to."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from packetgate.deciders.reflex.reading import parts_in
from packetgate.models.calling import WrittenCall
from packetgate.state.origins import OriginKind
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall
from packetgate.tools.provenance.evidence import Evidence
from packetgate.tools.provenance.judging import origins_of
from packetgate.tools.provenance.values import leaves
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_in, words_of

SURE = 0.9
"""Probability from which an optional value that nobody named is kept: the model has its reason, such as a synonym."""


def without_defaults(call: WrittenCall, catalogue: Catalogue) -> WrittenCall:
    """Return the call without optional arguments that say what their tool does anyway: small models write them all."""
    spec = _spec_of(call, catalogue)
    if spec is None:
        return call
    optional = call.arguments.keys() - spec.required
    return _without(
        call, {name for name in optional if _is_default(call.arguments[name], spec.parameters.get(name, {}))}
    )


def _is_default(value: Any, schema: Mapping[str, Any]) -> bool:
    return "default" in schema and type(value) is type(schema["default"]) and value == schema["default"]


def without_invented(call: WrittenCall, catalogue: Catalogue, evidence: Evidence) -> WrittenCall:
    """Return the call without optional arguments that nobody named and that the model was not sure of. Blocking.

    A value such as `pet_friendly` is named by its words.
    """
    spec = _spec_of(call, catalogue)
    if spec is None:
        return call
    unsure = {
        name: call.arguments[name]
        for name, probability in call.probabilities.items()
        if probability < SURE and name in spec.parameters and name not in spec.required
    }
    origins, said = origins_of(unsure, spec, evidence), {*words_in(evidence.user.folded)}
    return _without(
        call,
        {
            name
            for name, value in unsure.items()
            if origins[name].kind is OriginKind.NOBODY and not _is_said(value, said)
        },
    )


def _is_said(value: Any, said: Set[str]) -> bool:
    words = {word for leaf in leaves(value) for word in words_of(str(leaf.value))}
    return bool(words) and words <= said


def _spec_of(call: WrittenCall, catalogue: Catalogue) -> ToolSpec | None:
    return catalogue.get(catalogue.exactly(call.name) or "")


def _without(call: WrittenCall, names: Set[str]) -> WrittenCall:
    kept = {name: value for name, value in call.arguments.items() if name not in names}
    return replace(call, arguments=kept, probabilities={name: call.probabilities.get(name, 1.0) for name in kept})


def held_by(calls: Sequence[WrittenCall], request: str) -> Iterator[WrittenCall]:
    """Yield the calls that the request holds: as many as it has parts, and others that take more of its words."""
    parts, said, taken = len(parts_in(request)), request.casefold(), set[str]()
    for at, call in enumerate(calls):
        texts = {str(leaf.value).casefold() for name, value in call.arguments.items() for leaf in leaves(value, name)}
        new = {one for one in texts - taken if one and one in said}
        if at < parts or new:
            yield call
        taken |= texts


def unfilled(call: CheckedCall, catalogue: Catalogue, evidence: Evidence) -> Iterator[Correction]:
    """Yield an objection to each text that repeats its parameter's name: models fill in what they do not know so."""
    spec = catalogue[call.tool_name]
    origins = origins_of(call.params, spec, evidence)
    for name, value in call.params.items():
        repeated = isinstance(value, str) and words_of(value) == words_of(name)
        if repeated and origins[name].kind is OriginKind.NOBODY and "enum" not in spec.parameters.get(name, {}):
            told = f"`{spec.name}` needs a value for `{name}`, not its name: take it from the request, or ask for it."
            yield Correction(tool_name=spec.name, problem="placeholder", message=told)
