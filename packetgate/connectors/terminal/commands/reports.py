"""`packetgate tools`, `policy`, `settings`, `calibrate`, `evaluate`, `doctor` and `audit`."""

from typing import Annotated

import typer

from packetgate.connectors.options import (
    AsJson,
    Commands,
    Lite,
    McpConfigPath,
    Prime,
    Set,
    Writes,
    checked_files,
    run_settings_from,
    settings_from,
)


async def tools(
    name: Annotated[
        str | None, typer.Argument(help="Show only this tool, in full, or those of this server or category.")
    ] = None,
    mcp_config: McpConfigPath = None,
    full: Annotated[bool, typer.Option("--full", help="Full descriptions and schemas.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="Count past calls and their outcomes.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Delete what was learned from confirmed calls.")] = False,
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="With --usage or --forget: only of this session.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List the tools with risk, category and description, or their past use."""
    settings = settings_from(mcp_config=mcp_config, local=True)
    from packetgate.connectors.terminal import reports

    if forget:
        return await reports.forget_learned(settings, name, session)
    if usage:
        return await reports.show_usage(settings, name, session, as_json=as_json)
    return await reports.list_tools(checked_files(settings), name, full=full, as_json=as_json)


async def policy(
    every: Annotated[bool, typer.Option("--all", help="Also expired and revoked answers.")] = False,
    revoke: Annotated[str | None, typer.Option("--revoke", help="Revoke a remembered answer by its id.")] = None,
    as_json: AsJson = False,
) -> int:
    """List the policy rules of packetgate.toml, and remembered answers."""
    settings = settings_from(local=True)
    from packetgate.connectors.terminal import reports

    if revoke is not None:
        return await reports.revoke(settings, revoke)
    return await reports.show_policy(settings, every=every, as_json=as_json)


async def settings(
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
    lite: Lite = None,
    prime: Prime = None,
    as_json: AsJson = False,
) -> int:
    """Show the settings of a run and the options of models, with their sources: option, variable or file.

    With the options of another command, it shows what would apply there.
    """
    process_settings = settings_from(lite=lite, prime=prime, local=True)
    run_settings = run_settings_from(process_settings, overrides, allow_writes, allow_commands)
    from packetgate.connectors.terminal.reports import show_settings
    from packetgate.graph.composition import model_names, model_pool

    return show_settings(
        run_settings, model_names(process_settings), model_pool(process_settings).given, as_json=as_json
    )


async def calibrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the result and change nothing.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the last calibration.")] = False,
    as_json: AsJson = False,
) -> int:
    """Fit the review's confidence to your answers, and show how reliable it is."""
    settings = settings_from(local=True)
    from packetgate.connectors.terminal import calibrate as calibration

    if undo:
        return await calibration.undo(settings)
    return await calibration.run_calibrate(settings, keep=not dry_run, as_json=as_json)


async def evaluate(
    model: Annotated[
        str | None, typer.Argument(help="ollama:NAME, openai:NAME, llamacpp:FILE, ...; by default the one in use.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Delete the previous results and start over.")] = False,
    kinds: Annotated[
        list[str] | None, typer.Option("--kinds", help="Only cases of this kind, such as acts; can be repeated.")
    ] = None,
    cases: Annotated[int | None, typer.Option("--cases", min=1, help="Maximum number of cases of each kind.")] = None,
    as_json: AsJson = False,
) -> int:
    """Try a model on eighty cases: what it does well, how reliable its reviews are, which settings fit.

    Nothing is executed. Each result is stored, so that the same command continues. From then on the gate reads this
    model's confidence by these results.
    """
    settings = settings_from(local=True)
    from packetgate.connectors.terminal import evaluate as evaluation

    played, context = evaluation.chosen(kinds or (), cases), run_settings_from(settings).context
    settings = settings.model_copy(update={"lite": model, "prime": "reflex"} if model else {})
    return await evaluation.run_evaluate(settings, context, played, again=again, as_json=as_json)


async def doctor(
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    models: Annotated[
        bool, typer.Option("--models", help="Load and try each model; show its speed and its source of confidence.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Check what is configured, what answers, and what is missing.

    Exit status 1 means that something is missing; with --models, 2 that a model cannot be loaded or asked.
    """
    settings = settings_from(mcp_config=mcp_config, lite=lite, prime=prime, local=True)
    from packetgate.connectors.terminal.doctor import run_doctor

    return await run_doctor(settings, models=models, as_json=as_json)


async def audit(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this session's entries.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Export the entries as JSON lines, as stored.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that no entry of the journal was changed or deleted.")
    ] = False,
    head: Annotated[
        str | None, typer.Option("--head", help="With --verify: the hash of an earlier entry that must exist.")
    ] = None,
) -> int:
    """Show the journal: who asked, what was proposed, reviewed, approved by whom, and run, with what result.

    It holds all turns of this machine's database. Exit status 1 with --verify: the journal was changed.
    """
    if (session is not None or as_json) if verify else head is not None:
        raise typer.BadParameter("--verify takes --head, and neither --session nor --json", param_hint="--verify")
    settings = settings_from(local=True)
    from packetgate.connectors.terminal import audit as audits

    return await (audits.verify(settings, head) if verify else audits.show_audit(settings, session, as_json=as_json))
