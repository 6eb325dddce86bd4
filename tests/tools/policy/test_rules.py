"""Policy rules: the strictest decides, and mistakes only narrow."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from packetgate.tools.policy.rules import Effect, Rule, is_always_denied, strictest_rule

KNOWN = ("path", "content")
PARAMS = {"path": "notes/a.txt", "content": "x"}


def rule(effect: str, tool: str | None = "ai.write", **more: Any) -> Rule:
    return Rule.model_validate({"effect": effect, "tool": tool, **more})


def test_the_strictest_rule_decides_in_any_order():
    rules = [rule("allow"), rule("ask", arguments={"path": "notes/**"}), rule("deny", arguments={"path": "notes/a*"})]
    for several in permutations(rules):
        decided = strictest_rule(several, PARAMS, KNOWN, "terminal")
        assert decided is not None
        assert decided.effect is Effect.DENY
    assert strictest_rule(rules[:2], {"path": "other"}, KNOWN, "terminal") == rules[0]
    assert strictest_rule([], PARAMS, KNOWN, "terminal") is None


@pytest.mark.parametrize(
    ("arguments", "params", "holds"),
    [
        ({"path": "notes/*"}, PARAMS, True),
        ({"path": "notes/*", "content": "x"}, PARAMS, True),
        ({"path": "notes/*", "content": "y"}, PARAMS, False),
        ({"path": "notes/*"}, {"content": "x"}, False),
        ({"file": "notes/*"}, PARAMS, False),
        ({"path": "notes/*"}, {"path": "notes/../a"}, False),
        ({"path": "notes/*", "mode": "**"}, PARAMS, True),
        ({}, PARAMS, True),
    ],
)
def test_an_allow_rule_matches_only_named_arguments(arguments: Any, params: Any, holds: bool):
    assert rule("allow", arguments=arguments).matches(params, KNOWN) is holds


@pytest.mark.parametrize("effect", ["ask", "deny"])
@pytest.mark.parametrize(
    ("arguments", "params", "holds"),
    [
        ({"path": "notes/*"}, PARAMS, True),
        ({"path": "other/*"}, PARAMS, False),
        ({"path": "notes/*"}, {"path": "x/../NOTES/%61.txt"}, True),
        ({"path": "notes/*"}, {"content": "x"}, False),
        ({"pth": "notes/*"}, PARAMS, True),  # misspelt, so the rule applies to every call
    ],
)
def test_ask_and_deny_rules_match_widely(effect: str, arguments: Any, params: Any, holds: bool):
    assert rule(effect, arguments=arguments).matches(params, KNOWN) is holds


def test_rules_are_limited_to_tools_servers_and_channels():
    assert rule("allow", "ai.*").names_tool("ai.write", "ai")
    assert rule("allow", None, server="ai").names_tool("ai.write", "ai")
    assert not rule("allow", "ai.*", server="mail").names_tool("ai.write", "ai")
    assert not rule("allow", "ai.read").names_tool("ai.write", "ai")
    only = rule("deny", channels=["discord"])
    assert is_always_denied([only], "discord")
    assert not is_always_denied([only], "terminal")
    assert not is_always_denied([rule("deny", arguments={"path": "x"})], "discord")
    assert strictest_rule([only], PARAMS, KNOWN, "terminal") is None


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"effect": "allow"}, "a rule needs tool"),
        ({"effect": "alow", "tool": "ai.write"}, "effect"),
        ({"effect": "allow", "tool": ""}, "tool"),
        ({"effect": "allow", "tool": "ai.write", "chanels": ["terminal"]}, "chanels"),
        ({"effect": "allow", "tool": "ai.write", "channels": ["slack"]}, "channels"),
        ({"effect": "allow", "tool": "ai.write", "channels": []}, "leave `channels` out"),
        ({"effect": "allow", "tool": "ai.write", "arguments": {"path": 5}}, "arguments.path"),
        ({"tool": "ai.write"}, "effect"),
    ],
)
def test_a_misspelt_rule_is_an_error(fields: dict[str, Any], where: str):
    with pytest.raises(ValidationError) as caught:
        Rule.model_validate(fields)
    first = caught.value.errors()[0]
    assert where in f"{'.'.join(map(str, first['loc']))} {first['msg']}"


def test_a_rule_is_shown_as_a_line():
    assert rule("allow", arguments={"path": "notes/*", "content": "**"}).line == (
        'allow ai.write with path "notes/*", any content'
    )
    assert rule("deny", None, server="mail", channels=["discord"]).line == "deny mail.* in discord"


SITE, FOLDER = {"url": "https://evil.example/**"}, {"paths": "private/**"}


@pytest.mark.parametrize(
    ("arguments", "value", "holds"),
    [
        (SITE, "http://evil.example/x", True),
        (SITE, "https://evil.example:443/x", True),
        (SITE, "https://evil.example:8443/x", True),
        (SITE, "https://u:p@evil.example/x", True),
        (SITE, "https://evil.example./x", True),
        (SITE, " https://evil.example/x", True),
        (SITE, "HTTPS:\\\\Evil.Example\\x", True),
        (SITE, "htt\tps:/evil.example", True),
        (SITE, "//evil.example?x", True),
        (SITE, "evil.example/x", True),
        (SITE, "https://\uff45vil\u3002example/x", True),
        (SITE, ["https://good.example/", "https://evil.example/"], True),
        (SITE, {"to": [{"address": "http://evil.example:80/"}]}, True),
        (SITE, "https://evil.example.good.example/x", False),
        (SITE, "https://good.example/?u=https://evil.example/x", True),
        (SITE, "https://notevil.example/x", False),
        (SITE, "ftp://evil.example/x", True),
        ({"url": "https://*.evil.example/a/**"}, "http://b.evil.example/c/../a", True),
        ({"url": "https://*.evil.example/a/**"}, "http://b.evil.example/ab", False),
        ({"url": "https://evil.example"}, "http://evil.example/any", True),
        ({"url": "http://evil.example:8080/**"}, "https://evil.example/x", False),
        ({"url": "https://xn--bcher-kva.example/**"}, "https://B\u00fccher.example/x", True),
        ({"url": "http://127.0.0.1/**"}, "http://2130706433/x", True),
        (FOLDER, ["a.txt", "./x/../private/b.txt"], True),
        (FOLDER, "private", True),
        (FOLDER, [" private/b.txt "], True),
        (FOLDER, ["a.txt", "privately/b.txt"], False),
        ({"path": "~/.ssh/**"}, f"{Path.home()}/.ssh/id", True),
        ({"path": "~/.ssh/**"}, "~/.ssh", True),
        ({"path": "notes/**"}, f"{Path.cwd()}/notes/a", True),
        ({"url": "http://[::1]/**"}, "http://[0:0:0:0:0:0:0:1]:80/x", True),
        ({"url": "http://127.0.0.1/**"}, "http://[::ffff:127.0.0.1]/x", True),
        ({"url": "https://xn--strae-oqa.example/**"}, "https://stra\u00dfe.example/x", True),
        ({"url": "https://evil.example/a/**"}, "https://evil.example/a;v=1/x", True),
        ({"url": "*.evil.example"}, "https://a.evil.example/x", True),
        ({"url": "*.evil.example"}, "https://good.example/a.evil.example", True),
        ({"url": "*.evil.example"}, "https://good.example/a.evil.example.html", False),
        ({"path": "/etc/**"}, "file:/etc/passwd", True),
        ({"path": "/etc/**"}, "/proc/self/root/etc/passwd", True),
        ({"path": "/etc/**"}, "../" * 40 + "etc/passwd", True),
        ({"path": "/etc/**"}, "etc/passwd", False),
        ({"to": "*@evil.example"}, "Ann <a@good.example>, Eve <Eve@EVIL.example.>", True),
        ({"to": "*@evil.example"}, "a@good.example", False),
        ({"count": "7"}, 7.0, True),
        ({"to": "eve@evil.example"}, "mailto:eve@evil.example?subject=x", True),
        (SITE, "\0https://evil.example/x", True),
        (SITE, "see <https://evil.example/x>, please", True),
        (FOLDER, "a.txt\n'private/b.txt'", True),
        (FOLDER, {"private/b.txt": "text"}, True),
        (FOLDER, "a private matter", False),
        ({"text": "drop*"}, "please drop it", False),
        *(
            (FOLDER, path, True)
            for path in (
                *("/private/b.txt", "PRIVATE/b.txt", "private//b.txt", "private\\b.txt", "%70rivate/b.txt"),
                *("private%2fb.txt", "%2570rivate/b.txt", "\N{FULLWIDTH LATIN SMALL LETTER P}rivate/b.txt"),
            )
        ),
        *(
            (SITE, address, True)
            for address in (
                *(
                    "https://good.example/r?u=https%253A%252F%252Fevil.example",
                    "https://good.example/r?u=//evil.example/",
                ),
                *("https://good.example/r?u=evil.example", "https://good.example/https://evil.example/x"),
                *("view-source:https://evil.example/x", "url=https://evil.example/x"),
                ["https://good.example", {"next": "http://u@EVIL.example.:8443/"}],
            )
        ),
        *(
            ({"to": pattern}, mailbox, True)
            for pattern in ("eve@evil.example", "*@evil.example")
            for mailbox in (
                "eve+tag@evil.example",
                '"eve"@evil.example',
                "Eve <EVE@evil.example.>",
                "eve @evil.example",
            )
        ),
        *(({"count": "5"}, five, True) for five in ("5.0", "+5", "5e0", "\N{ARABIC-INDIC DIGIT FIVE}", " 5 ")),
    ],
)
def test_a_deny_rule_reads_addresses_paths_and_lists_as_a_system_does(arguments: Any, value: Any, holds: bool):
    (name,) = arguments
    assert rule("deny", arguments=arguments).matches({name: value}, [name]) is holds


def test_an_allow_rule_matches_a_list_if_every_element_fits():
    allow = rule("allow", arguments={"paths": "notes/*"})
    assert allow.matches({"paths": ["notes/a", "notes/b"]}, ["paths"])
    assert not allow.matches({"paths": ["notes/a", "notes/../b"]}, ["paths"])
    assert not allow.matches({"paths": []}, ["paths"])
