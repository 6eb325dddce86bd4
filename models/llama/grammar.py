"""Grammars that let a model write an answer's form and nothing else, for models that run in this process."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from models.forms import AnswerForm
from models.llama.vocabulary import Vocabulary
from models.llama.weights import LlamaWeights
from models.schemas import Schema, bounded, map_schema
from state.errors import DecisionError
from state.printing import compact_json

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

COMPILED = 64
"""Grammars kept: one for each palette and stage."""
MAX_ITEMS = 16
MAX_CHARACTERS = 4000
"""Longest array, and longest text, where a schema names no limit."""

_COMPACT: Any = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
_LENIENT: Any = {**_COMPACT, "lenient": True, "coerce_one_of": True}
"""Passes over what no grammar can hold, such as `not`."""


@dataclass(frozen=True)
class Grammar:
    """A compiled form."""

    matcher: "LLMatcher"
    """Follows an answer and tells which tokens may come next."""
    widened: tuple[str, ...]
    """The parts whose schema no grammar can hold in full: more is let through there, to validation."""


class Grammars:
    """Compiles forms for one vocabulary. For one thread."""

    def __init__(self, weights: LlamaWeights) -> None:
        self._weights = weights
        self._compiled: dict[str, Grammar] = {}

    def grammar(self, form: AnswerForm) -> Grammar:
        """Return the form's grammar, its follower at the start.

        Raises:
            DecisionError: the form itself, not one of its parts, cannot be held.
        """
        key = compact_json([form.name, form.body, dict(form.parts)])
        compiled = self._compiled.pop(key, None) or self._compile(form)
        self._compiled[key] = compiled  # the last used stands last
        if len(self._compiled) > COMPILED:
            del self._compiled[next(iter(self._compiled))]
        return Grammar(compiled.matcher.deep_copy(), compiled.widened)

    @cached_property
    def _tokenizer(self) -> "LLTokenizer":
        """The vocabulary as the grammar engine sees it. Takes about a second on large ones."""
        from llguidance import LLTokenizer, TokenizerWrapper

        vocabulary = Vocabulary(self._weights)
        return LLTokenizer(TokenizerWrapper(vocabulary), eos_token=vocabulary.ends)

    def _compile(self, form: AnswerForm) -> Grammar:
        narrow = partial(bounded, items=MAX_ITEMS, characters=MAX_CHARACTERS)
        parts = {part: narrow(schema) for part, schema in form.parts.items()}
        alone = {part: AnswerForm(part, {"$ref": f"#/$defs/{part}"}, {part: parts[part]}) for part in parts}
        widened = tuple(part for part, one in alone.items() if self._refused(one.schema(), _COMPACT))
        for part in widened:
            if self._refused(alone[part].schema(), _LENIENT):
                parts[part] = map_schema(parts[part], self._simpler)
                alone[part] = replace(alone[part], parts={part: parts[part]})
        hopeless = tuple(part for part in widened if self._refused(alone[part].schema(), _LENIENT))
        matcher = self._matcher(AnswerForm(form.name, narrow(form.body), parts).schema(hopeless), _LENIENT)
        if isinstance(matcher, str):
            raise DecisionError(f"no grammar can hold {form.name}: {matcher}")
        return Grammar(matcher, widened)

    def _simpler(self, schema: Schema) -> Schema:
        """Return a schema without what no grammar holds: patterns that look around, and keywords beside a reference."""
        if "$ref" in schema:
            return {"$ref": schema["$ref"]}
        text = {"type": "string", "pattern": schema.get("pattern", "")}
        if "pattern" in schema and self._refused(text, _LENIENT):
            return {key: value for key, value in schema.items() if key != "pattern"}
        return schema

    def _refused(self, schema: Schema, options: Any) -> bool:
        return isinstance(self._matcher(schema, options), str)

    def _matcher(self, schema: Schema, options: Any) -> "LLMatcher | str":
        """Return a follower of the schema, or why there is none."""
        from llguidance import LLMatcher

        try:
            grammar = LLMatcher.grammar_from_json_schema(schema, overrides=options)
        except ValueError as error:  # half a surrogate pair
            return str(error)
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        return matcher.get_error() or matcher
