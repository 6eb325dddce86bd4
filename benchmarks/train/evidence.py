"""Fit the weight of each piece of evidence for a call, on calls of real models for the requests of public sets.

`collect` runs each case with a model and without, and stores both calls with their evidence. A model that makes no call
is forced to make one. `fit` fits the weights, measures them with each set and each model left out, and writes the
shipped weights. Cases without labelled arguments (When2Call) show when no call is right.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
from pydantic import BaseModel, ConfigDict

from benchmarks.command_line import add_data_option, command_parser
from benchmarks.real_models.__main__ import SETS
from benchmarks.real_models.opening import open_model
from benchmarks.selection.cases import Case, drawn, packet_of, public_sets
from benchmarks.selection.figures import Call, Outcome, auroc, is_right, same
from benchmarks.train.logistic import Bounds, Logistic, Matrix
from benchmarks.train.own import FOLDER, Request, catalogues
from packetgate.deciders.advice import Advisers
from packetgate.deciders.language.evidence import (
    EVIDENCE_FITTED,
    FROM_TOKENS,
    KINDS,
    CallEvidence,
    CallNeedEvidence,
    kind_of,
)
from packetgate.deciders.language.prompting import tool_offer, turn_messages
from packetgate.deciders.language.review import evidence_from_verdict, yes_or_no
from packetgate.deciders.language.selection import ModelSelector
from packetgate.deciders.packets import facts_of
from packetgate.lab.fitting import calibration_error, reliability
from packetgate.models.model import Model
from packetgate.plugins import installed
from packetgate.reflex.calls import select
from packetgate.reflex.fit import fits_by_part, probability_of_any
from packetgate.reflex.scoring import evidence_from_request
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import DIGITS, log_odds
from packetgate.tools.spec.tool_spec import ToolSpec

OWN = tuple(sorted(path.stem for path in (FOLDER / "held_out").glob("*.json")))
"""Our own catalogues with requests that no other training uses."""
MEASURED_ON = 100
"""Number of cases of each public set that `benchmarks.real_models` measures, and that no fit uses."""
PULL = 30.0
"""Strength of the regularisation of the weights towards their prior, in calls."""
PRIOR = CallEvidence(
    always=-0.4,
    judged=1.0,
    written=1.0,
    name=0.13,
    arguments=0.8,
    yes=0.6,
    clear=0.6,
    said=2.0,
    acts=0.05,
    passed_over=-0.7,
    practised=1.2,
)
"""Prior weights, fitted with an earlier judge on 777 requests; those of `clear` and `said` are guesses."""
ACTING_PRIOR = CallNeedEvidence(always=0.9, acts=0.17, needed=0.33)
"""Prior weights from the same fit."""
AGAINST = frozenset({"passed_over"})
"""Evidence whose weight is at most 0, however rare it is. The weight of other evidence is at least 0."""
FREE = frozenset({"always", "written"})
"""Evidence that characterises a kind of call; its weight may have any sign."""
GATE = 0.7
ALL = 1_000_000


class Question(NamedTuple):
    """A request, its tools, and the right calls."""

    set: str
    id: str
    words: str
    tools: Mapping[str, ToolSpec]
    wanted: bool
    """Whether any call is right."""
    right: Callable[[Call], bool]


class Candidate(BaseModel):
    """A possible call for a case."""

    model_config = ConfigDict(frozen=True)

    call: Call
    evidence: dict[str, float]
    """Evidence from the model. Each fit computes the evidence from the request again."""
    right: bool
    by_model: bool
    """Whether the model wrote the call without being forced to call a tool."""


class Row(BaseModel):
    """The candidates of one model for one case."""

    model_config = ConfigDict(frozen=True)

    model: str
    set: str
    id: str
    wanted: bool
    acts: float | None
    serves: float
    candidates: tuple[Candidate, ...]


def main() -> None:
    """Collect calls or fit the weights from the command line."""
    parser = command_parser("benchmarks.train.evidence", __doc__)
    parser.add_argument("stage", choices=("collect", "fit"))
    parser.add_argument("rows", type=Path, nargs="+", help="files of JSON Lines; `collect` adds to the first")
    parser.add_argument("--model", help="model to collect from, such as llamacpp:/path/model.gguf?n_threads=1")
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=(*SETS, *OWN), choices=(*SETS, *OWN), metavar="SET")
    parser.add_argument("--sample", type=int, default=40, help="number of requests of each set")
    args = parser.parse_args()
    if not args.data:
        parser.error("the folder of the public sets is missing: use --data, or set PACKETGATE_DATA")
    if args.stage == "fit":
        every = {(one.set, one.id): one for name in args.sets for one in _questions(name, args.data, ALL)}
        rows = [row for path in args.rows for row in _rows(path)]
        fit([_read(row, every[row.set, row.id]) for row in rows if (row.set, row.id) in every])
    elif args.model:
        kept = args.rows[0]
        known = {(row.model, row.set, row.id) for row in _rows(kept)} if kept.exists() else set()
        by_set = [[*_questions(name, args.data, args.sample)] for name in args.sets]
        asked = [one for row in zip_longest(*by_set) for one in row if one]
        with kept.open("a", encoding="utf-8") as file:
            asyncio.run(_collect(args.model, asked, known, file))
    else:
        parser.error("collect needs --model")


def _questions(name: str, data: Path, most: int) -> Iterator[Question]:
    if name in OWN:
        (own,) = (one for one in catalogues(held_out=True) if one.name == name)
        for number, request in drawn([*enumerate(own.requests)], most):
            right = partial(_is_asked_for, request)
            yield Question(name, str(number), request.text, own.tools, bool(request.tool), right)
        return
    for case in drawn(public_sets(data)[name](), MEASURED_ON + most)[MEASURED_ON:]:
        tools = {tool.spec.name: tool.spec for tool in case.tools}
        yield Question(name, case.id, case.query, tools, bool(case.expected) and not case.asks, partial(_will_do, case))


def _is_asked_for(request: Request, call: Call) -> bool:
    return call.name == request.tool and same(call.arguments, {k: [v] for k, v in request.arguments.items()})


def _will_do(case: Case, call: Call) -> bool:
    return is_right(case, Outcome(id=case.id, action="call", calls=(call,), relevance=0))


async def _collect(name: str, asked: Sequence[Question], known: Collection[tuple[str, str, str]], file: TextIO) -> None:
    model = await open_model(name)
    for question in asked:
        if (model.name, question.set, question.id) in known:
            continue
        try:
            row = await _row(question, model)
        except DecisionError as error:
            print(f"{question.set} {question.id}: {error}", file=sys.stderr)
            continue
        print(row.model_dump_json(), file=file, flush=True)


def _asked(question: Question) -> tuple[CognitionPacket, Catalogue]:
    catalogue = Catalogue(question.tools.values())
    return packet_of(question.words, catalogue), catalogue


def _serves(packet: CognitionPacket, catalogue: Catalogue) -> float:
    """Return the probability that a tool fits the current step."""
    return max(map(probability_of_any, fits_by_part(packet, catalogue).values()), default=0.0)


def _read(row: Row, question: Question) -> Row:
    """Return the row with the evidence from the request for each call."""
    packet, catalogue = _asked(question)
    own, known = select(packet, catalogue), facts_of(packet, catalogue)
    candidates = []
    for one in row.candidates:
        call = known.traced_call(catalogue[one.call.name], one.call.arguments or {})
        read = evidence_from_request(call, packet, catalogue, own)
        if row.acts is not None and "written" not in read | one.evidence:
            read |= {"acts": round(log_odds(row.acts), DIGITS), "passed_over": 1.0}
        candidates.append(one.model_copy(update={"evidence": one.evidence | read, "right": question.right(one.call)}))
    return row.model_copy(update={"serves": _serves(packet, catalogue), "candidates": tuple(candidates)})


async def _row(question: Question, model: Model) -> Row:
    packet, catalogue = _asked(question)
    context, offer = RoutingContext(), tool_offer(model, packet, catalogue, Advisers.of(installed()))
    sampling = {"temperature": context.selection_temperature, "top_p": context.selection_top_p, "max_tokens": 300}
    asked = ModelSelector(model, packet, catalogue, context, sampling)
    messages = await turn_messages(model, packet, catalogue, context, offer, 300)
    chosen = await asked.select(messages, offer.tools)
    by_model = bool(chosen.calls)
    acts = chosen.call_probability
    if not chosen.calls:
        chosen = await asked.select(messages, offer.tools, must_call=True)
    own = select(packet, catalogue)
    found: dict[str, Candidate] = {}
    for who, one in [*((by_model, one) for one in chosen.calls), *((False, one) for one in own.calls)]:
        call = Call(name=one.tool_name, arguments=one.params)
        if call.model_dump_json() in found:
            continue
        verdict = await yes_or_no(model, question.words, catalogue[one.tool_name], one.params)
        evidence = {**one.evidence, **evidence_from_verdict(verdict)}
        found[call.model_dump_json()] = Candidate(
            call=call, evidence=evidence, right=question.right(call), by_model=who
        )
    return Row(
        model=model.name,
        set=question.set,
        id=question.id,
        wanted=question.wanted,
        acts=acts,
        serves=_serves(packet, catalogue),
        candidates=tuple(found.values()),
    )


def fit(rows: Sequence[Row]) -> None:
    """Fit all weights, print their metrics on left-out data, and write the weights."""
    calls: dict[str, dict[str, float]] = {}
    every = [(row, one) for row in rows if _is_judged(row) for call in row.candidates for one in _versions(call)]
    for name in KINDS:
        judged = [(row, one) for row, one in every if kind_of(one.evidence) == name]
        right = np.array([float(one.right) for _, one in judged])
        chosen = np.array([one.by_model for _, one in judged])
        kind = {"clear"} if "yes" in name.split() else {"said"}  # no measured model states only this evidence
        fields = [
            one for one in CallEvidence._fields if one in FREE | kind or any(one in call.evidence for _, call in judged)
        ]
        inputs = np.array(
            [[getattr(CallEvidence.from_signals(one.evidence), field) for field in fields] for _, one in judged]
        )
        logistic = Logistic([getattr(PRIOR, field) for field in fields], [*map(_bounds, fields)], PULL)
        by: dict[str, Callable[[Row], str]] = {"set": lambda row: row.set, "model": lambda row: row.model}
        for what, group in by.items():
            sure = logistic.left_out(inputs, right, np.array([group(row) for row, _ in judged]))
            _print(f"{name}, each {what} left out, the model's own calls", sure[chosen], right[chosen])
        calls[name] = _named(fields, logistic.fitted(inputs, right))
    stated = [row for row in rows if row.acts is not None]
    inputs = np.array([[1.0, log_odds(row.acts or 0.0), log_odds(row.serves)] for row in stated])
    wanted = np.array([float(row.wanted) for row in stated])
    logistic = Logistic([*ACTING_PRIOR], [*map(_bounds, CallNeedEvidence._fields)], PULL)
    sets = np.array([row.set for row in stated])
    _print("acting, each set left out", logistic.left_out(inputs, wanted, sets), wanted)
    acting = _named(CallNeedEvidence._fields, logistic.fitted(inputs, wanted))
    EVIDENCE_FITTED.write_text(json.dumps({"calls": calls, "acting": acting}, indent=2) + "\n", encoding="utf-8")


def _named(fields: Sequence[str], weights: Matrix) -> dict[str, float]:
    return {field: round(float(one), 4) for field, one in zip(fields, weights, strict=True)}


def _versions(call: Candidate) -> Iterator[Candidate]:
    """Yield a call with the evidence of a model that returns all probabilities, and of models that return fewer."""
    known = {name: value for name, value in call.evidence.items() if name != "yes"}
    verdicts: list[dict[str, float]] = [{}]
    if "yes" in call.evidence:
        verdicts.append({"yes": call.evidence["yes"]})
    for verdict in verdicts:
        for unknown in (frozenset[str](), FROM_TOKENS):
            evidence = {name: value for name, value in known.items() if name not in unknown} | verdict
            yield call.model_copy(update={"evidence": evidence})


def _is_judged(row: Row) -> bool:
    return row.set != "when2call" or not row.wanted


def _bounds(field: str) -> Bounds:
    if field in FREE:
        return None, None
    return (None, 0.0) if field in AGAINST else (0.0, None)


def _print(title: str, sure: Matrix, right: Matrix) -> None:
    passed = sure >= GATE
    pairs = [(float(one), bool(ok)) for one, ok in zip(sure, right, strict=True)]
    area = auroc([one for one, ok in pairs if ok], [one for one, ok in pairs if not ok])
    print(
        f"{title}: {len(pairs)}, {right.mean():.2f} right, AUROC {area or 0:.3f}, "
        f"{int(passed.sum())} pass the gate, {right[passed].mean() if passed.any() else 0:.3f} of them right, "
        f"{right[passed].sum() / max(1.0, right.sum()):.2f} of the right, "
        f"ECE {calibration_error(reliability(pairs)):.3f}"
    )


def _rows(path: Path) -> Iterator[Row]:
    yield from map(Row.model_validate_json, path.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    main()
