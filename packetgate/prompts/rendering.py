"""Fill in prompt templates."""

from functools import cache
from importlib.resources import files
from string import Template


def render(name: str, **fields: str) -> str:
    """Return the prompt `name` with its `$fields` filled in; JSON braces in it survive.

    Raises:
        KeyError: a field of the template is missing.
        FileNotFoundError: there is no such prompt.
    """
    return _template(name).substitute(fields)


def load_prompts() -> list[str]:
    """Return all templates. Afterwards `render` reads no file, which would block an event loop."""
    names = [file.name for file in files(__package__).iterdir()]
    return [_template(name.removesuffix(".md")).template for name in names if name.endswith(".md")]


@cache
def _template(name: str) -> Template:
    return Template(files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip())
