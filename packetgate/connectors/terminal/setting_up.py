"""`packetgate init`: models and MCP servers of this machine, the choice among them, and the files it writes."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from packetgate.connectors import rendering
from packetgate.connectors.client_settings import ENTRY, NAMES, SettingsFile, is_ours, is_same, place_of, write
from packetgate.connectors.rendering import plain
from packetgate.connectors.terminal.reading import Reader
from packetgate.graph.pool import model_pool
from packetgate.graph.settings import DEFAULT_CONFIG, DEFAULT_PREFERENCES, Settings
from packetgate.models.discovery import Discovery, discover
from packetgate.models.endpoint import HOSTED
from packetgate.models.options import MODEL
from packetgate.models.pool import ModelPool
from packetgate.models.spec import REFLEX, parse_model
from packetgate.models.speed import measured_speed
from packetgate.state.errors import ConfigError, DecisionError, InputError, ModelError
from packetgate.state.printing import counted
from packetgate.state.redaction import is_secret_name
from packetgate.tools.servers.config import entries_in, switched_off
from packetgate.tools.servers.entries import UnusableEntryError, read_entry

KEY = "mcpServers"
say = partial(rendering.say, style="")


@dataclass(frozen=True)
class _ClientServers:
    client: str
    file: Path
    entries: Mapping[str, Any]
    """The enabled and usable servers, as they are written in the file."""
    notes: tuple[str, ...] = ()
    """Why other servers are left out."""


def _find_servers(folder: Path) -> list[_ClientServers]:
    found = [_of_client(client, place_of(client).file, folder) for client in NAMES]
    return [one for one in found if one.entries or one.notes]


def _of_client(client: str, file: Path, folder: Path) -> _ClientServers:
    try:
        document = SettingsFile.read(file).document
    except ConfigError as error:
        return _ClientServers(client, file, {}, (str(error),))
    off, entries, notes = switched_off(document), dict[str, Any](), list[str]()
    for name, entry in entries_in(document, folder):
        try:
            if name not in off and read_entry(entry).enabled and name != ENTRY and not is_ours(entry):
                entries[name] = json.loads(json.dumps(entry, default=str))
        except UnusableEntryError as error:
            notes.append(f"{file}: {name!r} is left out: {error}")
    return _ClientServers(client, file, entries, tuple(notes))


def _new_entries(found: Iterable[_ClientServers], ours: SettingsFile, folder: Path) -> dict[str, Any]:
    known: dict[str, Any] = dict(entries_in(ours.document, folder))
    new: dict[str, Any] = {}
    for one in found:
        for name, entry in one.entries.items():
            if any(is_same(entry, other) for other in known.values()):
                continue
            others = (f"{name}-{one.client}{at or ''}" for at in count())
            free = next(other for other in chain([name], others) if other not in known)
            known[free] = new[free] = entry
    return new


def _with_entries(ours: SettingsFile, new: Mapping[str, Any]) -> bytes:
    if ours.data is None:
        return f"{json.dumps({'builtin': True, KEY: new}, indent=2, ensure_ascii=False)}\n".encode()
    has = ours.document.get(KEY) or {}
    if not isinstance(has, dict):
        raise ConfigError(f"{ours.path}: {KEY}: it must be an object of servers by name: nothing was changed")
    return ours.changed(KEY, {**has, **new})


def _has_secret(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_secret, value))
    pairs = value.items() if isinstance(value, dict) else ()
    return any(
        (isinstance(one, str) and is_secret_name(str(key)) and one != "" and "${" not in one) or _has_secret(one)
        for key, one in pairs
    )


BACK_UP = ".before-init"
NO_MODEL = {"none", "no", "n", "0", "reflex"}
NOTHING_FOUND = (
    "No model was found on this machine. Start Ollama or LM Studio, put a GGUF file into ~/models, or set a provider's "
    "key. Until then, Packetgate works without a language model (reflex)."
)
NOBODY_TO_ASK = (
    "standard input and output are not a terminal, so nothing was written. "
    "--yes accepts the first model and all servers; --model NAME sets this model only"
)
EVALUATE = "`packetgate evaluate` tries it on eighty cases, and has the gate read its reviews by what came of them"
NOT_MEASURED = "not measured: nothing is sent to a provider before the request at the end"


@dataclass(frozen=True)
class Wishes:
    """The options of the command."""

    yes: bool = False
    """Answer every question with yes."""
    model: str | None = None
    servers: bool = True
    """Whether to look for servers of other clients."""
    folders: tuple[Path, ...] = ()
    """More folders with GGUF files."""


class SetUp:
    """One run of the command; `read` asks the user, and is None where there is no terminal."""

    def __init__(self, settings: Settings, wishes: Wishes, read: Reader | None) -> None:
        self._settings, self._wishes = settings, wishes
        self._read = None if wishes.yes else read
        self.pool: ModelPool | None = None
        """The chosen model, loaded."""

    async def run(self) -> str | None:
        """Find models and servers, let the user choose, and write the files; return the chosen model.

        Raises:
            ConfigError: a file exists that may not be changed, or a file cannot be read.
            InputError: there is no terminal to ask at, and neither `yes` nor a model was given.
            ModelError, DecisionError: the model that was named cannot be used.
        """
        models = await asyncio.to_thread(SettingsFile.read, self._settings.config or DEFAULT_PREFERENCES)
        servers = await asyncio.to_thread(SettingsFile.read, self._settings.mcp_config or DEFAULT_CONFIG)
        folder = self._settings.root.resolve()
        found = await discover(self._wishes.folders)
        clients = await asyncio.to_thread(_find_servers, folder) if self._wishes.servers else []
        _show(found, clients)
        if self._read is None and not self._wishes.yes and self._wishes.model is None:
            raise InputError(NOBODY_TO_ASK)
        changes = models.data is not None and self._wishes.model not in {"reflex", _named(models)}
        if self._read is None and not self._wishes.yes and changes:
            raise ConfigError(f"{models.path} already exists: --yes changes it and keeps a copy")
        model = await self._chosen(found)
        new = _new_entries(clients, servers, folder)
        if model and _named(models) != model:
            await self._save(
                models, lambda: models.changed("models", {"lite": {MODEL: model}}), f"set the model to {model}"
            )
            say(EVALUATE)
        takes = new and await self._agrees(f"Take over {counted(len(new), 'server')} ({', '.join(new)})?")
        if takes and await self._save(servers, lambda: _with_entries(servers, new), f"added {', '.join(new)}"):
            _warn_of_secrets(servers.path, new)
        return model

    async def _chosen(self, found: Discovery) -> str | None:
        if self._wishes.model is not None:
            return await self._tried(self._wishes.model)
        if self._read is not None:
            return await self._asked(found, self._read)
        for offer in found.offers:
            try:
                return await self._tried(offer.model)
            except (ModelError, DecisionError) as error:
                say(f"{offer.model} cannot be used: {error}")
        return None

    async def _asked(self, found: Discovery, read: Reader) -> str | None:
        default = "1" if found.offers else "none"
        while True:
            said = (await read(f"Which model? A number, a name, or none [{default}]: ")).strip() or default
            if said.casefold() in NO_MODEL:
                return None
            if said.isdecimal() and int(said) > len(found.offers):
                say(f"there is no number {said}: the last one is {len(found.offers)}")
                continue
            try:
                model = await self._tried(found.offers[int(said) - 1].model if said.isdecimal() else said)
            except (ModelError, DecisionError, ConfigError) as error:
                say(str(error))
                continue
            if model is None or await self._agrees("Use it?"):
                return model

    async def _tried(self, model: str) -> str | None:
        spec = parse_model(model)
        if spec == REFLEX:
            return None
        pool = model_pool(self._settings.model_copy(update={"lite": model, "prime": "reflex"}))
        is_hosted = spec.provider == "openai" and spec.server in HOSTED
        with rendering.console(stderr=True).status(f"trying {model} ..."):
            if not is_hosted:
                await pool.check()
            loaded = await pool.get("lite")
            speed = await measured_speed(loaded) if loaded and not is_hosted else NOT_MEASURED
        say(f"{model}: {speed}")
        self.pool = pool
        return model

    async def _agrees(self, question: str) -> bool:
        if self._read is None:
            return self._wishes.yes
        return (await self._read(f"{question} [Y/n] ")).strip().casefold() in {"", "y", "yes"}

    async def _save(self, file: SettingsFile, content: Callable[[], bytes], what: str) -> bool:
        is_there = file.data is not None
        if is_there and not await self._agrees(f"{file.path} already exists. Change it and keep a copy?"):
            say(f"{file.path}: not changed")
            return False
        data = await asyncio.to_thread(content)
        if file.data is not None:
            names = (file.path.with_name(f"{file.path.name}{BACK_UP}{f'-{at}' if at else ''}") for at in count())
            kept = next(one for one in names if not one.exists())
            await asyncio.to_thread(write, kept, file.data)
            say(f"{kept}: copy of the previous {file.path.name}")
        await asyncio.to_thread(write, file.path, data)
        say(f"{file.path}: {what}")
        return True


def _named(file: SettingsFile) -> str | None:
    models = file.document.get("models")
    given = (
        {role: one.get(MODEL) for role, one in models.items() if isinstance(one, dict)}
        if isinstance(models, dict)
        else {}
    )
    return given.get("lite") if given.get("prime") is None else None


def _show(found: Discovery, clients: list[_ClientServers]) -> None:
    table = rendering.table("", "", "", "", right=(0, 2), wrapped=(1, 3), header=False)
    for number, offer in enumerate(found.offers, 1):
        size = f"{offer.size / 1e9:.1f} GB" if offer.size else ""
        table.add_row(str(number), plain(offer.model), size, plain(offer.where, "dim"))
    for name, variable in found.keys:
        table.add_row("", f"{name}:NAME", "hosted", plain(f"{variable} is set; choose it by a model's name", "dim"))
    for client in clients:
        if client.entries:
            where = plain(f"{client.client}: {client.file}", "dim")
            table.add_row("", plain(", ".join(client.entries)), counted(len(client.entries), "server"), where)
    if not found.offers and not found.keys:
        say(NOTHING_FOUND)
    if table.row_count:
        rendering.console().print(table)
    for note in (*found.notes, *(note for client in clients for note in client.notes)):
        say(note)


def _warn_of_secrets(path: Path, entries: Mapping[str, Any]) -> None:
    if names := [name for name, entry in entries.items() if _has_secret(entry)]:
        say(
            f"{path} contains keys copied from other clients ({', '.join(names)}): only you can read the file. "
            "Keep it out of version control, or replace the keys with ${NAME}"
        )
