"""Which prompts belong to which visit of a stage, or why there are none to show."""

from connectors.trace.timeline import Visit
from graph.records.prompts import StagePrompts

UNKNOWN = "The prompts were not looked up, as this page was made from a file: they are kept where the turn ran."
GONE = "The prompts are not on record: they are kept for PACKETGATE_PROMPT_DAYS days, and not at all where that is 0."
SILENT = "Nothing was sent to the model."
REFLEX = "No model was asked: reflexes decided."


def by_visit(prompts: tuple[StagePrompts, ...], stages: tuple[Visit, ...]) -> list[list[StagePrompts]]:
    """Return what was said during each visit, in order, and last what belongs to none: its stage did not end."""
    placed: list[list[StagePrompts]] = [[] for _ in range(len(stages) + 1)]
    for one in prompts:
        within = [at for at, stage in enumerate(stages) if stage.stage == one.stage and one.at <= stage.ended]
        placed[within[0] if within else -1].append(one)
    return placed


def why_without(stage: Visit, of_turn: tuple[StagePrompts, ...] | None) -> str:
    """Return why there are no prompts of a stage; empty for one that asks no model."""
    deciders = {entry.decided_by for entry in stage.entries}
    if "model" in deciders or any(entry.is_fallback for entry in stage.entries):
        return UNKNOWN if of_turn is None else SILENT if of_turn else GONE
    return REFLEX if "reflex" in deciders else ""
