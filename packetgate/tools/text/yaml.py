"""YAML, as settings files have it: values that JSON has as well, no types of programs."""

import json
from typing import Any


def loads(text: str) -> Any:
    """Return the value of a YAML text.

    Raises:
        ValueError: it is none.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text), default=str))
    except (YAMLError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from error
