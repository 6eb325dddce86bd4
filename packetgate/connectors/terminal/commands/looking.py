"""`packetgate tools`, `policy`, `settings`, `calibrate`, `evaluate`, `doctor` and `audit`."""

from pathlib import Path
from typing import Annotated

import typer

from packetgate.connectors.options import (
    AsJson,
    Commands,
    Lite,
    McpConfig,
    Prime,
    Set,
    Writes,
    checked_files,
    run_settings_from,
    settings_from,
)
from packetgate.state.errors import ConfigError


async def tools(
    name: Annotated[
        str | None, typer.Argument(help="Show only this tool, in full, or those of this server or category.")
    ] = None,
    mcp_config: McpConfig = None,
    full: Annotated[bool, typer.Option("--full", help="Full descriptions and schemas.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="What was chosen in past turns, and what came of it.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Forget what confirmed calls have taught of them.")] = False,
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="With --usage or --forget: of this conversation.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List the tools: risk, category and brief description, in full on request; or how they were used."""
    if usage and full:
        raise typer.BadParameter("there is no full form of --usage: leave one of them out", param_hint="--full")
    if forget and (usage or full or as_json):
        raise typer.BadParameter("goes alone: it lists nothing", param_hint="--forget")
    if session is not None and not (usage or forget):
        raise typer.BadParameter("goes with --usage: tools belong to no session", param_hint="--session")

    settings = settings_from(mcp_config=mcp_config, own=True)
    if forget:
        from packetgate.connectors.terminal.reports import forget_learned

        return await forget_learned(settings, name, session)
    if usage:
        from packetgate.connectors.terminal.reports import show_usage

        return await show_usage(settings, name, session, as_json=as_json)
    checked_files(settings)
    from packetgate.connectors.terminal.reports import list_tools

    return await list_tools(settings, name, full=full, as_json=as_json)


async def policy(
    every: Annotated[bool, typer.Option("--all", help="Also what was remembered and holds no longer.")] = False,
    revoke: Annotated[str | None, typer.Option("--revoke", help="Take back what was remembered, by its id.")] = None,
    as_json: AsJson = False,
) -> int:
    """List what may run unasked, and what may not at all: the rules of packetgate.toml, and remembered answers."""
    if revoke is not None and (every or as_json):
        raise typer.BadParameter("goes alone: it lists nothing", param_hint="--revoke")

    settings = settings_from(own=True)
    from packetgate.connectors.terminal import reports as shown

    if revoke is not None:
        return await shown.revoke(settings, revoke)
    return await shown.show_policy(settings, every=every, as_json=as_json)


async def settings(
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    chosen: Set = None,
    lite: Lite = None,
    prime: Prime = None,
    as_json: AsJson = False,
) -> int:
    """Show the settings of a run and the options of models, and where each is from: an option, a variable, a file.

    Given the options of another command, it shows what would hold there.
    """

    made = settings_from(lite=lite, prime=prime, own=True)
    found = run_settings_from(made, chosen, allow_writes, allow_commands)
    from packetgate.connectors.terminal.reports import show_settings
    from packetgate.graph.pool import model_names, model_pool

    return show_settings(found, model_names(made), model_pool(made).given, as_json=as_json)


async def calibrate(
    look_only: Annotated[
        bool, typer.Option("--dry-run", help="Show what it would come to, and change nothing.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the last calibration back.")] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Say what another threshold or policy would have asked about.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="With --replay: the threshold; by default the one that holds."),
    ] = None,
    policy_file: Annotated[
        Path | None, typer.Option("--policy", help="With --replay: a packetgate.toml, in place of yours.")
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, help="With --replay: how far back; 30 by default.")] = None,
    as_json: AsJson = False,
) -> int:
    """Fit the review's confidence to what you answered, and show how far it can be believed."""
    if undo and (replay or look_only or as_json):
        raise typer.BadParameter("goes alone", param_hint="--undo")
    if replay and look_only:
        raise typer.BadParameter("changes nothing as it is: leave --dry-run out", param_hint="--replay")
    for name, given in (("--threshold", threshold), ("--policy", policy_file), ("--days", days)):
        if given is not None and not replay:
            raise typer.BadParameter("goes with --replay", param_hint=name)

    settings = settings_from(own=True)
    from packetgate.connectors.terminal import calibrate as shown

    if undo:
        return await shown.undo(settings)
    if replay:
        holds = run_settings_from(settings).context.confidence_threshold
        least = holds if threshold is None else threshold
        return await shown.replay(settings, least, policy_file, days or 30, as_json=as_json)
    return await shown.calibrate(settings, keep=not look_only, as_json=as_json)


async def evaluate(
    model: Annotated[
        str | None, typer.Argument(help="ollama:NAME, openai:NAME, llamacpp:FILE, ...; by default the one in use.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Forget what came of it before, and start over.")] = False,
    kinds: Annotated[
        list[str] | None, typer.Option("--kinds", help="Only cases of this kind, such as acts; can be repeated.")
    ] = None,
    cases: Annotated[int | None, typer.Option("--cases", min=1, help="Only so many cases of each kind.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Save the passport as a page.")] = None,
    force: Annotated[bool, typer.Option("--force", help="With --html: replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> int:
    """Try a model on eighty cases: what it does well, how far its reviews can be believed, which settings fit.

    Nothing is executed. Each case is kept, so that the same command goes on where one was stopped. From then on the
    gate reads this model's confidence by what came of its cases.
    """
    if force and html is None:
        raise typer.BadParameter("goes with --html: nothing else is written", param_hint="--force")

    settings = settings_from(own=True)
    alone = {"lite": model, "prime": "reflex"} if model else {}
    from packetgate.connectors.terminal import evaluate as evaluating

    played, context = evaluating.chosen(kinds or (), cases), run_settings_from(settings).context
    if html and html.exists() and not force:
        raise ConfigError(f"{html}: is there already: give another name, or --force to replace it")
    settings = settings.model_copy(update=alone)
    return await evaluating.evaluate(settings, context, played, html, again=again, as_json=as_json)


async def doctor(
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    models: Annotated[
        bool, typer.Option("--models", help="Load each model, ask it, and tell its speed and how sure it can be.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Check what is configured, what answers, and what is missing.

    Exit status 1 means that something is missing; with --models, 2 that a model cannot be loaded or asked.
    """

    settings = settings_from(mcp_config=mcp_config, lite=lite, prime=prime, own=True)
    from packetgate.connectors.terminal.doctor import run_doctor

    return await run_doctor(settings, models=models, as_json=as_json)


async def audit(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this conversation's entries.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Export the entries as JSON lines, as they are kept.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that every entry is as it was written, and none is missing.")
    ] = False,
    head: Annotated[
        str | None, typer.Option("--head", help="With --verify: an entry's hash, kept from before, that must be there.")
    ] = None,
) -> int:
    """Show the journal: who asked, what was proposed, reviewed, approved by whom, and run, with what result.

    It is of all turns of this machine's database, whoever shows it. Exit status 1 with --verify: it was changed.
    """
    if verify and (session is not None or as_json):
        raise typer.BadParameter("the whole journal is checked: leave --session and --json out", param_hint="--verify")
    if head is not None and not verify:
        raise typer.BadParameter("goes with --verify", param_hint="--head")

    settings = settings_from(own=True)
    from packetgate.connectors.terminal.audit import show_audit
    from packetgate.connectors.terminal.audit import verify as verified

    return await (verified(settings, head) if verify else show_audit(settings, session, as_json=as_json))
