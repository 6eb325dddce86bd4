"""`packetgate init`: find models and MCP servers on this machine, and write packetgate.toml and mcp.json."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from packetgate.connectors import rendering
from packetgate.connectors.client_settings import (
    CLIENTS,
    ENTRY,
    SettingsFile,
    is_proxy_entry,
    is_same_server,
    settings_place,
    write,
)
from packetgate.connectors.options import settings_from
from packetgate.connectors.terminal.pulling import find_model, pull, show_models
from packetgate.connectors.terminal.reading import LineReader, is_at_terminal, reader
from packetgate.graph.composition import model_pool
from packetgate.graph.settings import DEFAULT_CONFIG, DEFAULT_PREFERENCES, Settings
from packetgate.models.kinds import FoundModels, discover, parse_model
from packetgate.models.model import describe_speed
from packetgate.models.options import MODEL
from packetgate.state.errors import ConfigError, DecisionError, InputError, ModelError
from packetgate.tools.catalogue.config_file import read_config_file
from packetgate.toolsets.builtin.appeared import confirm
from packetgate.toolsets.servers.config import UnusableEntryError, read_server_entry

NO_MODEL = {"none", "no", "n", "0", "reflex"}
NOTHING_FOUND = (
    "No model was found on this machine. Start Ollama or LM Studio, put a GGUF file into ~/models, set a provider's "
    "key, or download a model: packetgate model pull. Until then, Packetgate works without a language model (reflex)."
)
NO_TERMINAL = (
    "standard input and output are not a terminal, so nothing was written. "
    "--yes accepts the first model and all servers; --model NAME sets this model only"
)
REVIEWER = (
    "Let the decision model {} review calls in place of the chat model? How often it is right about calls was not "
    "measured."
)
_say = partial(rendering.say, style="")


async def init(
    model: Annotated[
        str | None, typer.Option("--model", help="Use this model, such as ollama:qwen3:4b; reflex means no model.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: use the first model found and all servers.")
    ] = False,
) -> int:
    """Find models and MCP servers on this machine, and write packetgate.toml and mcp.json for this folder.

    It looks for Ollama, LM Studio, llama.cpp and vLLM on their usual ports, and in the usual folders for GGUF files and
    other clients' settings. No key is sent. A model is downloaded only if none was found and you name one.
    """
    settings = settings_from()
    files = (settings.preferences_path or DEFAULT_PREFERENCES, settings.config_path or DEFAULT_CONFIG)
    read = reader() if is_at_terminal() and not yes else None
    found = await discover([settings.models_path])
    reviewers = [one.model for one in found.offers if parse_model(one.model).only_reviews]
    discovery = replace(found, offers=tuple(one for one in found.offers if one.model not in reviewers))
    entries = await asyncio.to_thread(_client_servers)
    _show(discovery, entries, reviewers)
    if read is None and not yes and model is None:
        raise InputError(NO_TERMINAL)
    try:
        if read and model is None and not (discovery.offers or discovery.keys):
            model = await _download(settings, read)
        chosen = await (_choose_model(settings, discovery, read) if model is None else _try_model(settings, model))
        models = {} if chosen is None else {"lite": chosen}
        if read and reviewers and await _confirms(read, REVIEWER.format(reviewers[0]), default="n"):
            models["prime"] = reviewers[0]
        if models:
            await asyncio.to_thread(write_models, files[0], models, settings.home)
        if entries and (
            yes or (read and await _confirms(read, f"Copy {len(entries)} servers ({', '.join(entries)})?"))
        ):
            await asyncio.to_thread(_write_servers, files[1], entries, settings.home)
    except EOFError as error:
        raise InputError("cancelled: nothing more was written") from error
    _say('To try it: packetgate ask "Which files are in this folder?"')
    return 0


def _client_servers() -> dict[str, Any]:
    servers: dict[str, Any] = {}
    for client in CLIENTS:
        place = settings_place(client)
        try:
            entries = SettingsFile.read(place.file).servers(place.key)
        except ConfigError as error:
            _say(str(error))
            continue
        for name, entry in entries.items():
            try:
                usable = read_server_entry(entry).enabled
            except UnusableEntryError as error:
                _say(f"{place.file}: {name!r} is left out: {error}")
                continue
            is_known = any(is_same_server(entry, other) for other in servers.values())
            if usable and name != ENTRY and not is_proxy_entry(entry) and not is_known:
                servers[f"{name}-{client}" if name in servers else name] = entry
    return servers


async def _download(settings: Settings, read: LineReader) -> str | None:
    """Return the model that the user named and that was downloaded, `reflex` for none, or None after an error."""
    show_models(settings.models_path, {})
    reply = (await read("Download one of these models? Its name, or none [none]: ")).strip()
    if (reply or "none").casefold() in NO_MODEL:
        return "reflex"
    try:
        return f"llamacpp:{await asyncio.to_thread(pull, find_model(reply), settings.models_path)}"
    except InputError as error:
        _say(str(error))
        return None


async def _choose_model(settings: Settings, discovery: FoundModels, read: LineReader | None) -> str | None:
    """Return the model that the user names, or without `read` the first that works; None for no model."""
    names = [offer.model for offer in discovery.offers]
    untried = iter([*names, "none"])
    while True:
        if read is None:
            reply = next(untried)
        else:
            default = "1" if names else "none"
            reply = (await read(f"Which model? A number, a name, or none [{default}]: ")).strip() or default
        if reply.casefold() in NO_MODEL:
            return None
        if reply.isdecimal() and int(reply) > len(names):
            _say(f"{reply}: the last number is {len(names)}")
            continue
        model = names[int(reply) - 1] if reply.isdecimal() else reply
        try:
            tried = await _try_model(settings, model)
        except (ModelError, DecisionError, ConfigError) as error:
            _say(f"{model} cannot be used: {error}")
            continue
        if tried is None or read is None or await _confirms(read, "Use it?"):
            return tried


async def _try_model(settings: Settings, model: str) -> str | None:
    pool = model_pool(settings.model_copy(update={"lite": model, "prime": "reflex"}))
    if pool.is_reflex:
        return None
    if pool.is_hosted:
        _say(f"{model}: not tried: init sends nothing to hosted providers")
        return model
    with rendering.console(stderr=True).status(f"trying {model} ..."):
        await pool.check()
        loaded = await pool.get("lite")
        speed = await describe_speed(loaded) if loaded else ""
    _say(f"{model}: {speed}")
    return model


async def _confirms(read: LineReader, question: str, *, default: str = "y") -> bool:
    reply = (await read(f"{question} [{'Y/n' if default == 'y' else 'y/N'}] ")).strip().casefold()
    return (reply or default) in {"y", "yes"}


def write_models(path: Path, models: Mapping[str, str], data: Path) -> None:
    """Write the model of each role."""
    tables = "\n".join(
        f"[models.{role}]\n{MODEL} = {json.dumps(name, ensure_ascii=False)}\n" for role, name in models.items()
    )
    if path.exists() and "models" in read_config_file(path):
        _say(f"{path} already names models and was not changed. To use this model, write: {' '.join(tables.split())}")
        return
    before = f"{path.read_bytes().decode()}\n" if path.exists() else ""
    write(path, before + tables)
    confirm(path, data)
    _say(f"{path}: set the model to {' and '.join(models.values())}. `packetgate evaluate` measures it on eighty cases")
    for variable in ("PACKETGATE_LITE", "PACKETGATE_PRIME"):
        if os.environ.get(variable):
            _say(f"{variable} is set and overrides {path}: unset it")


def _write_servers(path: Path, entries: dict[str, Any], data: Path) -> None:
    if path.exists():
        _say(f"{path} exists and was not changed: copy the servers into it by hand")
        return
    write(path, f"{json.dumps({'builtin': True, 'mcpServers': entries}, indent=2, ensure_ascii=False)}\n")
    confirm(path, data)
    _say(f"{path}: added {', '.join(entries)}. It may contain keys: keep it out of version control")


def _show(discovery: FoundModels, servers: dict[str, Any], reviewers: Sequence[str]) -> None:
    rows = [
        (number, offer.model, f"{offer.size / 1e9:.1f} GB" if offer.size else "", offer.where)
        for number, offer in enumerate(discovery.offers, 1)
    ]
    reviewing = [("", name, "reviews", "a decision model, which can only be prime") for name in reviewers]
    hosted = [("", f"{name}:NAME", "hosted", f"{key} is set: name a model of it") for name, key in discovery.keys]
    copied = [("", name, "server", "") for name in servers]
    rendering.console().print(rendering.table(("", "", "", ""), [*rows, *reviewing, *hosted, *copied], right=(0, 2)))
    for note in discovery.notes:
        _say(note)
    if not discovery.offers and not discovery.keys:
        _say(NOTHING_FOUND)
