"""The models that the settings name, with the options that `packetgate.toml` gives them."""

from graph.settings import Settings
from models.options import file_options
from models.pool import ModelPool
from tools.catalogue.preferences import read_file


def model_pool(settings: Settings) -> ModelPool:
    """Return the pool. Nothing is loaded yet.

    Raises:
        ModelError: a string names no model.
        ConfigError: an option is none, or does not take its value.
    """
    path = settings.preferences_path
    models = {} if path is None else read_file(path).get("models", {})
    return ModelPool(settings.lite, settings.prime, file_options(models, str(path)))
