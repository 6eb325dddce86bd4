"""The composition root: creates models, tools, deciders and the graph from the settings."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from langgraph.graph.state import CompiledStateGraph

from packetgate.deciders.choosing import language_deciders, reflex_deciders, with_reviewer
from packetgate.deciders.protocols import Deciders
from packetgate.graph.building import build_graph
from packetgate.graph.journal import DatabaseJournal, open_journal
from packetgate.graph.records import prune_records
from packetgate.graph.servers import open_tools
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.models.options import MODEL, ROLES, file_options, model_names_in
from packetgate.models.pool import ModelPool
from packetgate.plugins import Plugins
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ModelError
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.setting_values import SettingValue
from packetgate.tools.catalogue.config_file import read_config_file
from packetgate.tools.text.result_store import ResultStore
from packetgate.toolsets.servers.hub import McpHub

if TYPE_CHECKING:
    from packetgate.models.model import Model

Graph = CompiledStateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket]


@dataclass(frozen=True)
class OpenGraph:
    """A graph with its servers, its journal and its deciders."""

    graph: Graph
    hub: McpHub
    journal: DatabaseJournal
    deciders: Deciders
    with_models: "Callable[[ModelPool], OpenGraph]"
    """Returns the graph with other models, on the same servers and sessions."""


def model_pool(settings: Settings) -> ModelPool:
    """Return the settings' models with the options of `packetgate.toml`. Nothing is loaded yet.

    Raises:
        ModelError: a name does not name a model.
        ConfigError: an option does not exist, or does not accept its value.
    """
    models = _models_table(settings)
    options, configured_names = file_options(models, str(settings.preferences_path)), model_names_in(models)
    for role, name in configured_names.items():
        if getattr(settings, role) != name:
            options.pop(role, None)  # the options belong to the model of the file
        for other in ROLES:
            if other != role and getattr(settings, other) == "reflex":  # one model plays both roles
                options[other] = options.get(role, {}) | options.get(other, {})
    return ModelPool(settings.lite, settings.prime, options)


def model_names(settings: Settings) -> dict[str, SettingValue]:
    """Return the model name of each role, with the place that sets the name.

    Raises:
        ConfigError: the file cannot be read.
    """
    configured_names = model_names_in(_models_table(settings))
    names: dict[str, SettingValue] = {}
    for role in ROLES:
        name = getattr(settings, role)
        source = f"--{role} or PACKETGATE_{role.upper()}" if role in settings.model_fields_set else "default"
        if configured_names.get(role) == name:
            source = f"{settings.preferences_path}: models.{role}.{MODEL}"
        names[role] = SettingValue(name, source)
    return names


def _models_table(settings: Settings) -> Any:
    path = settings.preferences_path
    return {} if path is None else read_config_file(path).get("models", {})


def deciders_for(
    models: ModelPool, results: ResultStore | None = None, plugins: Plugins | None = None, *, fallback: bool = False
) -> Deciders:
    """Return language deciders, or those without a model.

    Args:
        results: stores the images that models with vision receive.
        fallback: whether the deciders without a model replace a model that cannot decide.
    """
    lite, prime = partial(_load_model, models, "lite"), partial(_load_model, models, "prime")
    deciders = (
        reflex_deciders(plugins)
        if models.is_reflex
        else language_deciders(lite, prime, results, plugins, fallback=fallback)
    )
    return replace(
        with_reviewer(deciders, models.reviewer) if models.has_reviewer else deciders, model_digest=models.model_digest
    )


async def _load_model(models: ModelPool, role: Literal["lite", "prime"]) -> "Model":
    model = await models.get(role)
    if model is None:
        raise ModelError(f"no model for the role {role!r}: set PACKETGATE_LITE or PACKETGATE_PRIME")
    return model


@asynccontextmanager
async def open_graph(settings: Settings, models: ModelPool | None = None) -> AsyncIterator[OpenGraph]:
    """Open the graph with its servers, checkpointer and store, and close them afterwards.

    `models`: the settings' models, if already created.

    Raises:
        ConfigError, ModelError: something in the settings cannot be used.
    """
    models = models or model_pool(settings)
    await models.check()
    async with (
        open_tools(settings) as hub,
        open_checkpointer(settings) as checkpointer,
        open_store(settings) as store,
    ):
        await prune_records(store, settings.usage_days)
        journal = open_journal(settings)

        def opened(models: ModelPool) -> OpenGraph:
            deciders = deciders_for(models, result_store(settings), fallback=settings.fallback == "reflex")
            graph = build_graph(deciders, hub, settings.usage_days, journal)
            compiled = graph.compile(checkpointer=checkpointer, store=store, name="packetgate")
            return OpenGraph(compiled, hub, journal, deciders, opened)

        yield opened(models)
