"""Grammars that allow a model to write only calls of given tools."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from packetgate.models.call_syntax import CallSyntax
from packetgate.models.llama.context import Logits
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.model import OfferedTool
from packetgate.models.schemas import ANY_OBJECT, Schema, map_schema
from packetgate.state.errors import DecisionError
from packetgate.state.printing import compact_json

with suppress(ImportError):  # `check_installed` reports a missing package
    from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

CACHED_GRAMMARS = 64
"""Number of compiled grammars that are cached."""
MAX_ITEMS, MAX_CHARACTERS = 16, 4000
"""Limits of arrays and texts, if a schema sets none."""

_COMPACT: Any = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
_LENIENT: Any = {**_COMPACT, "lenient": True, "coerce_one_of": True}
"""Compiler options that ignore keywords that no grammar can enforce, such as `not`."""


_COMBINING = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"})
"""Keywords that may add properties to the listed properties of an object."""

LARGEST = 9 * 10**18
"""Limit of numbers; fits a signed 64-bit integer."""
SMALLEST = 1e-9
"""Smallest step between two numbers."""


class Mask:
    """Applies a grammar to logits."""

    def __init__(self, weights: LlamaWeights) -> None:
        # The grammar reads a token such as `<unk>` as the text `<unk>`, but the token adds no text to the answer.
        self._without_text = np.array([not piece and not weights.is_end(at) for at, piece in enumerate(weights.pieces)])

    def apply(self, matcher: "LLMatcher", logits: Logits) -> None:
        """Set the logits of forbidden tokens to minus infinity, in place."""
        bits = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
        allowed = np.unpackbits(bits, bitorder="little", count=self._without_text.size).astype(bool)
        written = allowed & ~self._without_text
        # a call may begin with a control token, which has no text
        logits[~(written if written.any() else allowed)] = -np.inf


@dataclass(frozen=True)
class Grammar:
    """A compiled grammar."""

    matcher: "LLMatcher"
    """Decides which tokens may come next."""
    widened_tools: tuple[str, ...]
    """Tools whose arguments no grammar can enforce in full; validation checks them."""


@dataclass(frozen=True)
class CallForm:
    """One or more calls of these tools in a model's own syntax."""

    tools: tuple[OfferedTool, ...]
    syntax: CallSyntax
    max_calls: int

    @property
    def key(self) -> str:
        """The key of the compiled form in the cache."""
        return compact_json([asdict(self.syntax), self.max_calls, [[one.name, one.parameters] for one in self.tools]])


class Grammars:
    """Compiles forms for one vocabulary. Not thread-safe."""

    def __init__(self, weights: LlamaWeights) -> None:
        self._weights = weights
        self._compiled: dict[str, Grammar] = {}

    def grammar(self, form: CallForm) -> Grammar:
        """Return the form's grammar, with its matcher at the start.

        Raise DecisionError if no grammar can enforce these calls.
        """
        compiled = self._compiled.pop(form.key, None) or self._compile(form)
        self._compiled[form.key] = compiled  # last in the order of use
        if len(self._compiled) > CACHED_GRAMMARS:
            del self._compiled[next(iter(self._compiled))]
        return Grammar(compiled.matcher.deep_copy(), compiled.widened_tools)

    @cached_property
    def _tokenizer(self) -> "LLTokenizer":
        vocabulary = Vocabulary(self._weights)
        return LLTokenizer(TokenizerWrapper(vocabulary), eos_token=vocabulary.ends)

    def _compile(self, form: CallForm) -> Grammar:
        syntax, widened_tools = form.syntax, []
        spaced = {"item_separator": syntax.item_separator, "key_separator": syntax.key_separator}
        rules = []
        for at, tool in enumerate(form.tools):
            schema, is_widened = self._enforceable(tool.parameters)
            widened_tools += [tool.name] if is_widened else []
            arguments = json.dumps({**schema, "x-guidance": _LENIENT | spaced})
            rules.append(f"call_{at}: {self._literal(tool.name + syntax.middle)} %json {arguments}")
        calls = " | ".join(f"call_{at}" for at in range(len(form.tools)))
        more = f"({self._literal(syntax.glue)} call){{0,{form.max_calls - 1}}}" if form.max_calls > 1 else ""
        start = f"start: {self._literal(syntax.head)} call {more} {self._literal(syntax.tail)}"
        lark = "\n".join([start, f"call: {calls}", *rules])
        matcher = self._matcher_or_error(LLMatcher.grammar_from_lark(lark))
        if isinstance(matcher, str):
            raise DecisionError(
                f"no grammar can enforce calls of {', '.join(one.name for one in form.tools)}: {matcher}"
            )
        return Grammar(matcher, tuple(widened_tools))

    def _enforceable(self, schema: Schema) -> tuple[Schema, bool]:
        """Return a schema that a grammar can enforce, and whether it accepts values that `schema` does not."""
        schema = with_size_limits(schema)
        is_widened = self._is_refused(schema, _COMPACT)
        if self._is_refused(schema, _LENIENT):
            schema = map_schema(schema, self._simplified)
        return ANY_OBJECT if self._is_refused(schema, _LENIENT) else schema, is_widened

    def _literal(self, text: str) -> str:
        if not any(one in text for one in self._weights.control_texts):
            return json.dumps(text, ensure_ascii=False) if text else ""
        parts = [""]
        for token in self._weights.tokenize(text, special=True):
            piece = self._weights.pieces[token].decode("utf-8", "replace")
            parts[-1:] = [parts[-1] + piece] if piece else [parts[-1], f"<[{token}]>", ""]
        return " ".join(
            part if at % 2 else json.dumps(part, ensure_ascii=False) for at, part in enumerate(parts) if part
        )

    def _simplified(self, schema: Schema) -> Schema:
        if "$ref" in schema:
            return {"$ref": schema["$ref"]}
        text = {"type": "string", "pattern": schema.get("pattern", "")}
        if "pattern" in schema and self._is_refused(text, _LENIENT):
            return {key: value for key, value in schema.items() if key != "pattern"}
        return schema

    def _is_refused(self, schema: Schema, options: Any) -> bool:
        try:
            grammar = LLMatcher.grammar_from_json_schema(schema, overrides=options)
        except ValueError:  # raised for a lone surrogate
            return True
        return isinstance(self._matcher_or_error(grammar), str)

    def _matcher_or_error(self, grammar: str) -> "LLMatcher | str":
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        return matcher.get_error() or matcher


def with_size_limits(schema: Any) -> Any:
    """Return the schema with limits, so that every answer ends.

    Arrays, texts and numbers get limits. Objects that list all properties accept no other properties.
    """
    closes = not _may_add_properties(schema)

    def change(one: Schema) -> Schema:
        if one.keys() & {"enum", "const"}:
            return one
        kinds = one["type"] if isinstance(one.get("type"), list) else [one.get("type")]
        if "array" in kinds and "maxItems" not in one:
            one = {**one, "maxItems": max(MAX_ITEMS, _int_or_zero(one.get("minItems")))}
        if "string" in kinds and not one.keys() & {"maxLength", "format", "pattern"}:
            one = {**one, "maxLength": max(MAX_CHARACTERS, _int_or_zero(one.get("minLength")))}
        if "number" in kinds or "integer" in kinds:
            lacks = {"minimum": -LARGEST, "maximum": LARGEST}
            one = {**{name: at for name, at in lacks.items() if f"exclusive{name.capitalize()}" not in one}, **one}
        if "number" in kinds:
            one = {"multipleOf": SMALLEST, **one}
        if closes and _lists_all_properties(one):
            one = {**one, "additionalProperties": False}
        return one

    return map_schema(schema, change)


def _may_add_properties(schema: Any) -> bool:
    found = False

    def look(one: Schema) -> Schema:
        nonlocal found
        several = isinstance(one.get("allOf"), list) and len(one["allOf"]) > 1
        beside = one.get("properties") and one.keys() & _COMBINING
        found = found or several or bool(beside or one.keys() & {"not", "if", "dependentSchemas"})
        return one

    map_schema(schema, look)
    return found


def _lists_all_properties(schema: Schema) -> bool:
    listed, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(listed, dict) or not isinstance(required, list):
        return False
    open_to = {"additionalProperties", "patternProperties", *_COMBINING}
    return not schema.keys() & open_to and all(name in list(listed) for name in required)


def _int_or_zero(value: Any) -> int:
    return value if isinstance(value, int) else 0


_BEFORE_TEXT = b"\n"
"""Prefix for tokenizing a text: many vocabularies add a space at the beginning."""


class Vocabulary:
    """The vocabulary for the grammar engine: each token has exactly the text that it writes.

    `llguidance.llamacpp` uses llama.cpp's tokenizer, which adds a space before a text and cuts it at other tokens.
    """

    bos_token_id = None

    def __init__(self, weights: LlamaWeights) -> None:
        self._weights = weights
        ends = [token for token in range(weights.size) if weights.is_end(token)]
        self.ends = ends or [weights.size]
        """Tokens that end an answer; if the vocabulary has none, a token id that the model cannot write."""
        self.eos_token_id = self.ends[0]
        self.tokens: Sequence[bytes] = [*weights.pieces, *([] if ends else [b""])]
        self.special_token_ids = [token for token, piece in enumerate(self.tokens) if not piece]
        self._by_text = {piece: token for token, piece in reversed([*enumerate(weights.pieces)]) if piece}
        self._longest = max(map(len, self._by_text), default=0)

    def __call__(self, text: bytes) -> list[int]:
        """Return tokens that write exactly this text, tokenized by the model if possible."""
        return self._model_tokens(text) or self._longest_first(text)

    def _model_tokens(self, text: bytes) -> list[int]:
        tokens = self._weights.tokenize(_BEFORE_TEXT + text, special=False)
        written = [self._weights.pieces[token] for token in tokens]
        while written and (not all(written) or b"".join(written) != text):
            del tokens[0], written[0]
        return tokens

    def _longest_first(self, text: bytes) -> list[int]:
        tokens: list[int] = []
        at = 0
        while at < len(text):
            ends = range(min(len(text), at + self._longest), at, -1)
            end = next((end for end in ends if text[at:end] in self._by_text), None)
            if end is None:
                break
            tokens.append(self._by_text[text[at:end]])
            at = end
        return tokens
