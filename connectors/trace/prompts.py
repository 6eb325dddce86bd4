"""The prompts of a stage as they were sent, or why there are none to show."""

from connectors.trace.timeline import Visit
from graph.records.prompts import StagePrompts
from models.requests import ModelRequest
from state.html.markup import Html, element, joined, name
from state.html.parts import duration, spent

UNKNOWN = "The prompts were not looked up, as this page was made from a file: they are kept where the turn ran."
GONE = "The prompts are not on record: they are kept for PACKETGATE_PROMPT_DAYS days, and not at all where that is 0."
SILENT = "Nothing was sent to the model."
REFLEX = "No model was asked: reflexes decided."


def by_visit(heard: tuple[StagePrompts, ...], stages: tuple[Visit, ...]) -> list[list[StagePrompts]]:
    """Return what was said during each visit, in order, and last what belongs to none: its stage did not end."""
    placed: list[list[StagePrompts]] = [[] for _ in range(len(stages) + 1)]
    for one in heard:
        within = [at for at, stage in enumerate(stages) if stage.stage == one.stage and one.at <= stage.ended]
        placed[within[0] if within else -1].append(one)
    return placed


def prompts(heard: list[StagePrompts], stage: Visit, of_turn: tuple[StagePrompts, ...] | None) -> Html | None:
    """Return what a stage said to its model, or why it is not there; None for a stage that asks none."""
    if heard:
        return said(heard)
    deciders = {entry.decided_by for entry in stage.entries}
    by_model = "model" in deciders or any(entry.is_fallback for entry in stage.entries)
    if by_model:
        return element("p", UNKNOWN if of_turn is None else SILENT if of_turn else GONE, kind="quiet")
    return element("p", REFLEX, kind="quiet") if "reflex" in deciders else None


def said(heard: list[StagePrompts]) -> Html:
    """Return exchanges one below the other."""
    return joined(_exchange(stage, one) for stage in heard for one in stage.exchanges)


def _exchange(stage: StagePrompts, one: ModelRequest) -> Html:
    took = f"{spent(one.usage)}, {duration(one.duration_ms)}"
    head = element(
        "summary",
        element("strong", f"{stage.role} model"),
        f" {name(one.model)} ",
        element("small", took),
        kind="asked",
    )
    options = ", ".join(f"{option} {value}" for option, value in one.options.items())
    messages = [_message(message.role, message.text) for message in one.messages]
    answer = _message("answer", one.answer, "answered") if one.answer else None
    error = _message("no answer" if not one.answer else "broke off", one.error, "failed") if one.error else None
    told = element("p", f"Asked with {options}.", kind="quiet") if options else None
    return element("details", head, *messages, answer, error, told, kind="exchange")


def _message(role: str, text: str, kind: str = "") -> Html:
    label = element("span", name(role), kind="role")
    return element("div", label, element("pre", text), kind=f"message {kind}".strip())
