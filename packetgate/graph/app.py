"""The exported graph, for LangGraph servers and Studio. It carries no checkpointer: the server brings its own."""

import logging
from functools import partial

from packetgate.graph.building import build_graph
from packetgate.graph.composition import deciders_for, make_hub
from packetgate.graph.journal.opening import journal_in
from packetgate.graph.kept import kept_in
from packetgate.graph.loops import LoopTools
from packetgate.graph.pool import model_pool
from packetgate.graph.served import ServedGraph
from packetgate.graph.settings import Settings
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.tools.servers.config import load_config

_settings = Settings()
load_preferences(_settings.preferences_path)  # what is wrong with the file is told at the start, not at the first turn
_config = load_config(_settings.config_path, _settings.root)
for _line in _config.odd:
    logging.getLogger(__name__).warning("%s", _line)
_models = model_pool(_settings)
_kept = kept_in(_settings)
graph = ServedGraph.of(
    build_graph(
        deciders_for(_models, _kept),
        LoopTools(partial(make_hub, _settings, _config)),
        _settings.usage_days,
        _settings.prompt_days,
        journal_in(_settings),
    ).compile(name="packetgate"),
    _kept,
)
