"""`python -m benchmarks.risk.bounds DATA [LABELS]`: may a learned guess call a tool of an unknown server a read?

Prints, on servers left out, how many tools have no sign of a change in their definition and a score far enough below
the threshold. LABELS is a folder of labels of the registry. Nothing of this runs with Packetgate: some tools change
something that their definition does not mention. Set OPENBLAS_NUM_THREADS=1 on a busy machine.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.train.risk.data import Example, catalogue, data_folder, labelled, own
from benchmarks.train.risk.learning import Features, learn, seen
from packetgate.tools.risk.features import (
    Definition,
    features_of,
    inflected_verb_kind,
    parameter_kinds,
    says_read_only,
    verb_kind,
    word_lists,
)
from packetgate.tools.risk.tool import RiskModel
from packetgate.tools.spec.tool_spec import subschemas
from packetgate.tools.text.words import words_of

MARGINS = (0.0, 1.0, 2.0, 3.0)
"""Distances below the threshold of the score that are tried."""
_ARGUMENTS = word_lists("arguments")
_ACTING = frozenset().union(
    *(_ARGUMENTS[name] for name in ("actions", "bodies", "command_lines", "commands", "method_names", "modes", "sets"))
) | frozenset("body code command data expression function input instruction operation options payload prompt".split())
_WORD = re.compile(r"[A-Za-z]+")


def _signs_of_change(tool: Definition) -> Iterator[str]:
    names = words_of(tool.name)
    kinds = [verb_kind(word) for word in names]
    if "reads" not in kinds or {*kinds} & {"changes", "runs", "changes?", "runs?"}:
        yield "its name"
    described = _WORD.findall(tool.description.lower())
    lead = next((kind for word in described[:6] if (kind := inflected_verb_kind(word))), "")
    if lead != "reads":
        yield "the verb of its description"
    if not says_read_only(tool.description) and any(
        inflected_verb_kind(word) in {"changes", "runs"} for word in described
    ):
        yield "a word of its description"
    if {kind for kind, _ in parameter_kinds(tool.description, tool.schema)} - {"search"}:
        yield "a parameter with a program, an address or a path to save to"
    yield from map(str, _acting_parts(tool.schema))


def _acting_parts(schema: Mapping[str, Any]) -> Iterator[str]:
    if not schema.get("properties") and schema.get("additionalProperties"):
        yield "any arguments"
    for name, part in subschemas(dict(schema)):
        words = {*words_of(name)}
        choices = part.get("enum")
        if name and words & _ACTING and not choices:
            yield name
        if name and any(verb_kind(word) in {"changes", "runs"} for word in words):
            yield name
        is_switch = part.get("type") == "boolean"
        if is_switch and not any(verb_kind(word) == "reads" for word in words) and words & _ARGUMENTS["confirmations"]:
            yield name
        if part.get("type") == "object" and part.get("additionalProperties", not part.get("properties")):
            yield name
        if isinstance(choices, list):
            yield from (
                str(choice)
                for choice in choices
                if {verb_kind(word) for word in words_of(str(choice))} & {"changes", "runs", "changes?", "runs?"}
            )


def left_out_model(examples: Sequence[Example], features: Features, tested: Sequence[Example]) -> RiskModel:
    """Return a model that was trained without a server, and without any tool that has the name of one of its tools."""
    servers, names = {one.server for one in tested}, {one.tool.name for one in tested}
    kept = [at for at, one in enumerate(examples) if one.server not in servers and one.tool.name not in names]
    return learn([examples[at] for at in kept], [features[at] for at in kept])


def upper_bound(count: int) -> float:
    """Return the 95 % upper bound of a share of which `count` trials showed none."""
    return 1 - 0.05 ** (1 / count) if count else 1.0


def main() -> None:
    """Print, for several margins, how many reads of left-out servers the bounds cover, and which other tools."""
    folder = data_folder(sys.argv[1:])
    own_examples, public = [*labelled(folder), *own()], catalogue(folder)
    examples = [*own_examples, *public]
    features = seen(examples)
    groups: dict[str, list[Example]] = {}
    for one in [*own_examples, *public, *(_registry_examples(Path(sys.argv[2])) if len(sys.argv) > 2 else ())]:
        if one.repository or one in public:
            groups.setdefault(one.server, []).append(one)
    counts = {margin: [0, 0, 0, 0] for margin in MARGINS}
    for rows in groups.values():
        for one, margin in product(rows, MARGINS):
            counts[margin][2 * one.does_more] += 1
        clean = [one for one in rows if not any(_signs_of_change(one.tool))]
        if not clean:
            continue
        model = left_out_model(examples, features, rows)
        for one in clean:
            below = model.threshold - model.score(features_of(one.tool))
            for margin in MARGINS:
                counts[margin][2 * one.does_more + 1] += below > margin
            if one.does_more and below > MARGINS[-1]:
                print(f"false read: {one.server} `{one.tool.name}`")
    print("| margin | reads | covered | writes | false reads | 95 % bound if none |\n|--:|--:|--:|--:|--:|--:|")
    for margin, (reads, covered, writes, false_reads) in counts.items():
        share = f"{covered} ({covered / max(1, reads):.0%})"
        print(f"| {margin} | {reads} | {share} | {writes} | {false_reads} | {upper_bound(writes):.2%} |")


def _registry_examples(labels: Path) -> Iterator[Example]:
    for path in sorted(labels.glob("*.json")):
        content = json.loads(path.read_text("utf-8"))
        for tool in content["definitions"]:
            if label := content["tools"].get(tool["name"]):
                definition = Definition(tool["name"], tool.get("description") or "", tool.get("inputSchema") or {})
                yield Example(definition, label["risk"], content["package"], content["package"])


if __name__ == "__main__":
    main()
