"""The exported graph for LangGraph servers, Studio and parent graphs, which bring the checkpointer."""

import logging
from functools import partial

from packetgate.graph.building import build_graph
from packetgate.graph.composition import deciders_for, model_pool
from packetgate.graph.event_loops import LoopTools
from packetgate.graph.journal import open_journal
from packetgate.graph.server_graph import ServerGraph
from packetgate.graph.servers import make_hub
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.toolsets.servers.config import load_config

_settings = Settings()
load_preferences(_settings.preferences_path)  # reports errors of the file at the start
_config = load_config(_settings.config_path, _settings.root)
for _line in _config.entry_problems:
    logging.getLogger(__name__).warning("%s", _line)
_models = model_pool(_settings)
_results = result_store(_settings)
graph = ServerGraph.from_graph(
    build_graph(
        deciders_for(_models, _results, fallback=_settings.fallback == "reflex"),
        LoopTools(partial(make_hub, _settings, _config)),
        _settings.usage_days,
        open_journal(_settings),
    ).compile(checkpointer=True, name="packetgate"),
    _results,
)
