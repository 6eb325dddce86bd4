"""Why a score is what it is, in words: by the words of a definition that weighed most."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from packetgate.state.printing import printable
from packetgate.tools.risk.features import Definition
from packetgate.tools.text.words import stem_of, words_in, words_of

MOST = 2
MOST_CHARS = 60
"""Of a word that is quoted: names and choices are the server's own."""
_LEAST = 0.15
"""Of a score that a reason must account for."""

_SAID = {
    "name": "its name says `{}`",
    "lead": "its description begins with `{}`",
    "first": "its description speaks of `{}`",
    "param": "it takes `{}`",
    "choice": "one of its choices is `{}`",
}
_KINDS = {
    "kind:name": "name",
    "kind:lead": "lead",
    "kind:and": "lead",
}


def reasons(tool: Definition, seen: Mapping[str, float], parts: Mapping[str, float], *, reads: bool) -> tuple[str, ...]:
    """Return the strongest reasons for a verdict, strongest first; none where no word speaks for it.

    Args:
        tool: what is judged.
        seen: its features.
        parts: what each of them adds to the score, for those that the model knows.
        reads: whether the verdict is that it only reads.
    """
    words = _words(tool)
    weights: defaultdict[str, float] = defaultdict(float)
    strongest: dict[str, str] = {}
    for feature in seen:
        place, part = _place(feature), parts.get(feature, 0.0) * (-1 if reads else 1)
        weights[place] += part
        if feature in words and (
            place not in strongest or part > parts.get(strongest[place], 0.0) * (-1 if reads else 1)
        ):
            strongest[place] = feature
    found = sorted((one for one in strongest if weights[one] >= _LEAST), key=lambda one: -weights[one])
    return tuple(_SAID[place].format(_quoted(words[strongest[place]])) for place in found[:MOST])


def _quoted(word: str) -> str:
    return printable(" ".join(word.split()))[:MOST_CHARS]


def _place(feature: str) -> str:
    """Return where a feature was seen; what is not a word anybody wrote belongs nowhere."""
    if feature.startswith("kind:"):
        sure = not feature.endswith(("none", "noun", "verb"))
        return next((place for kind, place in _KINDS.items() if sure and feature.startswith(kind)), "")
    return feature.partition(":")[0]


def _words(tool: Definition) -> dict[str, str]:
    """Return the word that a feature of one word stands for, as it is written."""
    return dict(_pairs(tool))


def _pairs(tool: Definition) -> Iterator[tuple[str, str]]:
    for word in words_in(tool.description[:600]):
        stem = stem_of(word)
        yield f"first:{stem}", word
        yield f"lead:{stem}", word
    for word in words_of(tool.name):
        yield f"name:{stem_of(word)}", word
        yield f"name:verb {stem_of(word)}", word
    properties = tool.schema.get("properties")
    for name, part in (properties if isinstance(properties, dict) else {}).items():
        yield f"param:={' '.join(stem_of(word) for word in words_of(str(name)))}", str(name)
        choices = part.get("enum") if isinstance(part, dict) else None
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, str) and words_of(choice):
                yield f"choice:={stem_of(words_of(choice)[0])}", choice
