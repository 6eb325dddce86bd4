from typing import Any

import pytest

from packetgate.state.context import NO_TOOLS, STRICTER, RoutingContext, intersect_patterns, routing_context
from packetgate.state.errors import ConfigError


def test_the_defaults_are_the_documented_values():
    context = routing_context(None)
    assert context == RoutingContext() == routing_context({})
    assert (context.selection_temperature, context.selection_top_p, context.selection_max_tokens) == (0.15, 0.9, 500)
    assert (context.review_temperature, context.review_max_tokens) == (0.3, 16)
    assert (context.confidence_threshold, context.max_reinjections) == (0.7, 3)
    assert (context.enabled, context.allow_write_tools, context.allow_execute_tools) == (True, False, False)
    assert context.on_low_confidence == "ask"


def test_an_unknown_setting_is_named_with_the_known_settings():
    with pytest.raises(ConfigError, match=r"^context\.confidence_treshold: .*; the settings .*confidence_threshold"):
        routing_context({"confidence_treshold": 0.9})


@pytest.mark.parametrize(
    ("field", "lowest", "highest", "outside"),
    [
        ("selection_temperature", 0.0, 2.0, [-0.01, 2.01]),
        ("selection_top_p", 0.01, 1.0, [0.0, 1.01]),
        ("selection_max_tokens", 16, 8192, [15, 8193]),
        ("review_temperature", 0.0, 2.0, [-0.01, 2.01]),
        ("review_max_tokens", 1, 8192, [0, 8193]),
        ("confidence_threshold", 0.0, 1.0, [-0.01, 1.01, float("nan")]),
        ("max_reinjections", 0, 10, [-1, 11]),
        ("max_parallel_calls", 1, 16, [0, 17]),
        ("ask_timeout_s", 0.001, 31_536_000.0, [0.0, -1.0, 1e18, float("inf"), float("nan")]),
        ("palette_size", 1, 256, [0, 257]),
        ("palette_token_budget", 100, 100_000, [99, 100_001]),
        ("on_low_confidence", "ask", "skip", ["run", "", None]),
    ],
)
def test_values_out_of_range_are_refused(field: str, lowest: object, highest: object, outside: list[object]):
    for inside in (lowest, highest):
        assert getattr(routing_context({field: inside}), field) == inside
    for value in outside:
        with pytest.raises(ConfigError, match=rf"^context\.{field}: "):
            routing_context({field: value})


@pytest.mark.parametrize(
    ("patterns", "allowed"),
    [
        ((), {"notes.read", "notes.write", "mail.send"}),
        (("notes.*",), {"notes.read", "notes.write"}),
        (("*.read", "mail.send"), {"notes.read", "mail.send"}),
        (("notes",), set()),
    ],
)
def test_only_tools_that_match_a_pattern_are_allowed(patterns: tuple[str, ...], allowed: set[str]):
    context = RoutingContext(allowed_tools=patterns)
    assert {name for name in ("notes.read", "notes.write", "mail.send") if context.allows_tool(name)} == allowed


def test_every_setting_has_a_description():
    """Studio shows the settings as a form."""
    fields = RoutingContext.model_json_schema()["properties"]
    assert [name for name, field in fields.items() if not field.get("description")] == []


@pytest.mark.parametrize(
    ("some", "others", "both"),
    [
        ((), (), ()),
        (("ai.read",), (), ("ai.read",)),
        ((), ("ai.*",), ("ai.*",)),
        (("ai.read", "mail.*"), ("ai.*",), ("ai.read",)),
        (("ai.*",), ("ai.read", "mail.send"), ("ai.read",)),
        (("ai.*", "mail.send"), ("*",), ("ai.*", "mail.send")),
        (("mail.*",), ("ai.*",), NO_TOOLS),
        (("*.read",), ("ai.*",), NO_TOOLS),  # they overlap, but neither contains the other
        (("[ab]",), ("????",), NO_TOOLS),
        (("[ab]",), ("*b]",), NO_TOOLS),
    ],
)
def test_an_intersection_allows_what_both_allow(some: tuple[str, ...], others: tuple[str, ...], both: tuple[str, ...]):
    assert intersect_patterns(some, others) == both


@pytest.mark.parametrize(
    ("wide", "base", "left"),
    [
        ({"allow_write_tools": True}, {}, {}),
        ({"allow_write_tools": True}, {"allow_write_tools": False}, {"allow_write_tools": False}),
        ({"allow_write_tools": False}, {}, {"allow_write_tools": False}),
        ({"allow_execute_tools": False}, {"allow_execute_tools": True}, {"allow_execute_tools": False}),
        ({"confidence_threshold": 0.2}, {}, {}),
        ({"confidence_threshold": 0.2}, {"confidence_threshold": 0.5}, {"confidence_threshold": 0.5}),
        ({"confidence_threshold": 0.9}, {}, {"confidence_threshold": 0.9}),
        ({"on_low_confidence": "ask"}, {"on_low_confidence": "skip"}, {"on_low_confidence": "skip"}),
        ({"on_low_confidence": "skip"}, {}, {"on_low_confidence": "skip"}),
        ({"allowed_tools": ()}, {"allowed_tools": ("ai.*",)}, {"allowed_tools": ("ai.*",)}),
        ({"allowed_tools": ("*",)}, {"allowed_tools": ("ai.*",)}, {"allowed_tools": ("ai.*",)}),
        ({"allowed_tools": ("ai.read",)}, {}, {"allowed_tools": ("ai.read",)}),
        ({"enabled": True}, {"enabled": False}, {"enabled": False}),
        ({"max_reinjections": 9, "max_parallel_calls": 9, "ask_timeout_s": 1e6}, {}, {}),
        ({"palette_size": 200}, {"palette_size": 5}, {"palette_size": 200}),
    ],
)
def test_restricted_settings_are_never_wider_than_the_base(
    wide: dict[str, Any], base: dict[str, Any], left: dict[str, Any]
):
    found = RoutingContext.model_validate(wide).restricted_by(RoutingContext.model_validate(base))
    assert {name: getattr(found, name) for name in found.model_fields_set} == left


def test_every_setting_is_classified_as_permission_or_not():
    how_well = {"selection_", "review_", "answer_", "palette_", "persona"}
    others = RoutingContext.model_fields.keys() - STRICTER.keys()
    assert [name for name in others if not name.startswith(tuple(how_well))] == []
