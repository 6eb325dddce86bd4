"""Clean up calls that a model wrote: arguments that nobody named are removed or objected to."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from packetgate.deciders.reflex.reading import parts_in
from packetgate.models.calling import WrittenCall
from packetgate.state.origins import OriginKind
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall
from packetgate.tools.provenance.flagging import origins_of
from packetgate.tools.provenance.sources import SourceTexts
from packetgate.tools.provenance.values import leaves
from packetgate.tools.text.words import words_in, words_of

SURE = 0.9  # probability from which an optional value that nobody named is kept: it may be a synonym


def without_default_arguments(call: WrittenCall, catalogue: Catalogue) -> WrittenCall:
    """Return a call without optional arguments that equal their default: small models write them all."""
    spec = catalogue.get(catalogue.exactly(call.name) or "")
    if spec is None:
        return call
    optional = call.arguments.keys() - spec.required
    return _without(
        call, {name for name in optional if _is_default(call.arguments[name], spec.parameters.get(name, {}))}
    )


def _is_default(value: Any, schema: Mapping[str, Any]) -> bool:
    return "default" in schema and type(value) is type(schema["default"]) and value == schema["default"]


def without_invented(call: WrittenCall, catalogue: Catalogue, evidence: SourceTexts) -> WrittenCall:
    """Return a call without optional arguments that nobody named and of which the model was unsure. Blocking."""
    spec = catalogue.get(catalogue.exactly(call.name) or "")
    if spec is None:
        return call
    unsure = {
        name: call.arguments[name]
        for name, probability in call.probabilities.items()
        if probability < SURE and name in spec.parameters and name not in spec.required
    }
    origins, words = origins_of(unsure, spec, evidence), {*words_in(evidence.user.folded)}
    nobody = {name for name in unsure if origins[name].kind is OriginKind.NOBODY}
    return _without(call, {name for name in nobody if not _is_in(unsure[name], words)})


def _is_in(value: Any, words: Set[str]) -> bool:
    """Return whether all words of a value, such as `pet_friendly`, were said."""
    own = {word for leaf in leaves(value) for word in words_of(str(leaf.value))}
    return bool(own) and own <= words


def _without(call: WrittenCall, names: Set[str]) -> WrittenCall:
    arguments = {name: value for name, value in call.arguments.items() if name not in names}
    return replace(
        call, arguments=arguments, probabilities={name: call.probabilities.get(name, 1.0) for name in arguments}
    )


def asked_for(calls: Sequence[WrittenCall], request: str) -> Iterator[WrittenCall]:
    """Yield as many calls as the request has parts, and others that use more of its words."""
    parts, words, used = len(parts_in(request)), request.casefold(), set[str]()
    for at, call in enumerate(calls):
        texts = {str(leaf.value).casefold() for name, value in call.arguments.items() for leaf in leaves(value, name)}
        if at < parts or any(text and text in words for text in texts - used):
            yield call
        used |= texts


def placeholders(call: CheckedCall, catalogue: Catalogue, evidence: SourceTexts) -> Iterator[Correction]:
    """Yield an objection to each text that only repeats its parameter's name."""
    spec = catalogue[call.tool_name]
    origins = origins_of(call.params, spec, evidence)
    for name, value in call.params.items():
        repeats = isinstance(value, str) and words_of(value) == words_of(name)
        if repeats and origins[name].kind is OriginKind.NOBODY and "enum" not in spec.parameters.get(name, {}):
            message = (
                f"`{spec.name}` needs a value for `{name}`, not its name: take it from the request, or ask for it."
            )
            yield Correction(tool_name=spec.name, problem="placeholder", message=message)
