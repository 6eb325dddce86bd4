"""The models that the settings name, with the options that `packetgate.toml` gives them."""

from packetgate.graph.settings import Settings
from packetgate.models.options import MODEL, ROLES, file_options, named_models
from packetgate.models.pool import ModelPool
from packetgate.state.setting_values import SettingValue
from packetgate.tools.catalogue.preferences import read_file


def model_pool(settings: Settings) -> ModelPool:
    """Return the pool. Nothing is loaded yet.

    Raises:
        ModelError: a string names no model.
        ConfigError: an option is none, or does not take its value.
    """
    path = settings.preferences_path
    models = {} if path is None else read_file(path).get("models", {})
    options, named = file_options(models, str(path)), named_models(models)
    for role, name in named.items():
        if getattr(settings, role) != name:
            options.pop(role, None)  # they are of the model that is named beside them
        for other in ROLES:
            if other != role and getattr(settings, other) == "reflex":  # it plays both
                options[other] = options.get(role, {}) | options.get(other, {})
    return ModelPool(settings.lite, settings.prime, options)


def model_names(settings: Settings) -> dict[str, SettingValue]:
    """Return the model that each role is given, and where.

    Raises:
        ConfigError: the file cannot be read.
    """
    path = settings.preferences_path
    named = {} if path is None else named_models(read_file(path).get("models", {}))
    found: dict[str, SettingValue] = {}
    for role in ROLES:
        name = getattr(settings, role)
        where = f"--{role} or PACKETGATE_{role.upper()}" if role in settings.model_fields_set else "default"
        found[role] = SettingValue(name, f"{path}: models.{role}.{MODEL}" if named.get(role) == name else where)
    return found
