"""Patterns compare a value literally, and in every reading of a system."""

from pathlib import Path
from typing import Any

import pytest

from packetgate.tools.policy.patterns import fits, literal_pattern, may_fit

LONG = "x" * 10_000


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("notes/a.txt", "notes/*"),
        ("notes/a.txt", "notes/*.txt"),
        ("notes/deep/a.txt", "notes/**"),
        ("./notes/a.txt", "notes/*"),
        ("notes/a.txt", "./notes/*"),
        ("https://api.example.org/v1/x?y=1", "https://api.example.org/**"),
        ("two\nlines", "**"),
        ("a*b", r"a\*b"),
        ("a*b", literal_pattern("a*b")),
        ("a\\b", literal_pattern("a\\b")),
        ("../up", literal_pattern("../up")),
        (5, "5"),
        (True, "true"),
        (["b", "a"], '["b", "a"]'),
        ({"b": 1, "a": 2}, literal_pattern({"a": 2, "b": 1})),
        ("", ""),
        (LONG, "**"),
    ],
)
def test_fitting_values_match(value: Any, pattern: str):
    assert fits(value, pattern)
    assert may_fit(value, pattern)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("notes/deep/a.txt", "notes/*"),
        ("notes/../secret.txt", "notes/**"),
        ("./../secret.txt", "**/*"),
        ("././notes/a.txt", "notes/*"),
        ("./deploy now", "deploy *"),
        ("deploy now", "./deploy *"),
        ("notes/%2e%2e/secret.txt", "notes/**"),
        ("notes/%252e%252e/secret.txt", "notes/**"),
        ("notes\\..\\secret.txt", "notes**"),
        ("notes/a.txt\n", "notes/*"),
        ("notes/a\0.txt", "notes/*"),
        ("NOTES/a.txt", "notes/*"),
        ("https://api.example.org.evil.test/x", "https://api.example.org/**"),
        ("ab", r"a\*b"),
        ("xnotes/a", "notes/*"),
        ("notes/ax", "notes/a"),
        ("5", "6"),
        (5, '"5"'),
        ("", "x"),
        (None, ""),
    ],
)
def test_other_values_do_not_match(value: Any, pattern: str):
    assert not fits(value, pattern)


def test_other_paths_are_not_denied():
    assert not any(may_fit(value, "secret/*") for value in ["notes/a.txt", "secrets/a.txt", "a/secret", "", 5, None])


def test_a_value_at_any_depth_that_runs_unasked_is_compared() -> None:
    path: Any = "notes/../secret/a.txt"
    amount: Any = 900
    for _ in range(45):
        path, amount = {"a": [path]}, {"a": [amount]}
    assert may_fit(path, "secret/**")
    assert may_fit(amount, "> 500")
    assert not may_fit(path, "private/**")
    assert not may_fit(amount, "< 500")


@pytest.mark.parametrize("name", ["link.txt", "folder"])
def test_a_link_is_denied_and_not_allowed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").mkdir()
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / name).symlink_to(tmp_path / "secret")
    (tmp_path / name).symlink_to(tmp_path / "secret")
    assert may_fit(name, "secret/**")
    assert not fits(f"open/{name}/a.txt", "open/**")
    assert fits("open/other/a.txt", "open/**")


@pytest.mark.parametrize(
    "value", ["*", "**/a.txt", "s?cret/a.txt", "{secret,open}/a.txt", "@secret/a.txt", "--file=secret/a.txt"]
)
def test_wildcards_and_options_that_reach_a_denied_path_are_denied(value: str):
    assert may_fit(value, "secret/**")
    assert not may_fit("open/*.txt", "secret/**")


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("https://evil.test#.corp.org/", "https://*.corp.org/**"),
        ("https://evil.test\\.corp.org/", "https://*.corp.org/**"),
        ("https://u@x.corp.org/", "https://*.corp.org/**"),
        ("https://x.corp.org/ https://evil.test/", "https://*.corp.org/**"),
        ("eve@evil.test,ann@corp.org", "*@corp.org"),
        ("ann@corp.org;ben@corp.org", "*@corp.org"),
        ("notes/a, /etc/passwd", "notes/**"),
        ("notes/a /etc/passwd", "notes/**"),
        ("git status; rm x", "git *"),
        ("git status $(rm x)", "git *"),
        ("notes/\N{ONE DOT LEADER}\N{ONE DOT LEADER}/x", "notes/**"),
    ],
)
def test_a_second_value_or_another_host_is_not_allowed(value: str, pattern: str):
    assert not fits(value, pattern)


READINGS: dict[str, list[tuple[Any, str]]] = {
    "number": [
        *(
            (text, ">= 100")
            for text in ("2,000", " 34,567 ", "2.000", "2 000", "2'000", "2_000", "$2,000.00", "2,000 EUR")
        ),
        *((text, ">= 100") for text in ("0x7d0", "\uff12\uff10\uff10", "2\u00a0000", "many")),
        ("2,000", "2000"),
        ([{"sum": "2,000"}], "> 500"),
    ],
    "address": [
        *(
            (f"https://shop.example{text}", "https://bad.example/**")
            for text in ("\\@bad.example/a", "#@bad.example/a")
        ),
        *(
            (f"https://shop.example/{text}", "https://bad.example/**")
            for text in ("bad.example/a", "get/http/bad.example", "a?b=1&c=bad.example/a", "x/bad.example:443/a")
        ),
        *(
            (text, "https://bad.example/**")
            for text in ("git@bad.example:a/b.git", "bad.example:a/b", "https:bad.example/a")
        ),
        *(
            (text, "https://bad.example/**")
            for text in ("\\\\bad.example\\a", "https:\\\\bad.example", "ssh://u@bad.example/a")
        ),
    ],
    "option": [(f"{text}private/a", "private/**") for text in ("-f", "-xvf", "--file", "if=", "-o=", "-I./", "tar -C")],
    "mailbox": [
        (text, "*@bad.example")
        for text in (
            *(
                "eve@(x)bad.example",
                "eve(x(y))@bad.example",
                "Eve <eve@(x)bad.example>",
                "ok@shop.example, eve@(x)bad.example",
            ),
            *(
                "eve%bad.example@shop.example",
                "eve%bad.example%shop.example@shop.example",
                "bad.example!eve@shop.example",
            ),
            *("<@shop.example:eve@bad.example>", '"e@e"@bad.example', "eve @ bad.example."),
        )
    ],
    "command": [
        (text, "dd **")
        for text in (
            *(
                "dd\tif=a",
                " dd if=a",
                "dd\u00a0if=a",
                "dd${IFS}if=a",
                "'dd' if=a",
                "d\\d if=a",
                "/bin/dd if=a",
            ),
            *(
                "ls; dd if=a",
                "ls\ndd if=a",
                "$(dd if=a)",
                "sudo -n dd if=a",
                "sh -c 'dd if=a'",
                "A=1 timeout 5 dd if=a",
                "find . -exec dd if={} +",
                ">log dd if=a",
                "while ssh host 'dd if=a'; do :; done",
                *("e$'\\x63'ho; d$'\\x64' if=a", "{dd,if=a}", "/bin/d[a-d] if=a", "a=d; $a$a if=a", "${A:-dd} if=a"),
                *("ls | xargs dd", "ls|xargs -0 /bin/dd", "$'dd' if=a", "d$@d if=a", "d${x}d if=a", "d\\\nd if=a"),
            ),
        )
    ],
    "word of a shell": [
        *(
            (f"cat {text}", "private/**")
            for text in (
                *("'private'/a", "p\\rivate/a", "priv'at'e/a", '"priv"ate/a', "x/../'private'/a", "$'private'/a"),
                *("p$@rivate/a", "p${x}rivate/a", "<'private'/a", "--file='private'/a", "priv\\\nate/a"),
            )
        ),
        *((value, "private/**") for value in ("p\\rivate/a", ["sh", "-c", "cat 'private'/a"], "cat${IFS}'private'/a")),
        ("cat 'my private'/a", "my private/**"),
        ("g\\it pu''sh", "git push **"),
        ("git -C . push", "git push **"),
        ("git -c user.name='A B' --no-pager push b", "git push **"),
        ("aws --profile=p s3 -d rm a", "aws s3 rm **"),
        ("git pus? b", "git push **"),
        ("svc {push,pull} a", "svc push **"),
        ("wc < private/a", "wc private/**"),
        ("cd private && wc -l a", "wc private/**"),
        ("wc $X/a", "private/**"),
        ("curl https://b'ad'.example/a", "https://bad.example/**"),
    ],
}


@pytest.mark.parametrize(("value", "pattern"), [row for rows in READINGS.values() for row in rows])
def test_any_reading_is_denied(value: Any, pattern: str):
    assert may_fit(value, pattern)
    assert not fits(value, pattern)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("3.14", ">= 100"),
        ("1,5", ">= 100"),
        ("https://bad.example/shop.example.html", "https://shop.example/**"),
        ("add it", "dd **"),
        ("ls *.txt", "dd **"),
        ("echo $UNKNOWN_NAME", "dd **"),
        ("cat {a,b}.txt", "dd **"),
        ("git -C . status", "git push **"),
        ("git log --grep push", "git push **"),
        ("cd open && wc -l a", "wc private/**"),
        ("xargs add", "dd **"),
        ("it's private", "private/**"),
        ("cat a'private'/b", "private/**"),
        ("-x open/a", "private/**"),
        ("ann@shop.example (of bad.example)", "*@bad.example"),
    ],
)
def test_other_readings_are_not_denied(value: Any, pattern: str):
    assert not may_fit(value, pattern)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("2,000", "<= 100"),
        ("5", "<= 100"),
        *(
            (f"{text}@shop.example", "*@shop.example")
            for text in (
                "",
                "eve%bad.example",
                "bad.example!eve",
                "eve(x)",
                "x:eve",
                "eve%40bad.example",
                "eve,",
                '"e@b"',
            )
        ),
        *(
            (f"https://{text}shop.example/a", "https://**shop.example/**")
            for text in ("bad.example%2f.", "bad.example%23.", "bad.example\\.", "u@", "bad\u3002example.", "a:80:")
        ),
        ("https://shop.example/pub/..;/a", "https://shop.example/pub/**"),
        ("https://shop.example/a,https://bad.example/", "https://shop.example/**"),
        ("notes/$HOME/a", "notes/**"),
        ("notes/{a,../../b}", "notes/**"),
        ("notes/.'.'/b", "notes/**"),
        ("git@shop.example:../a", "git@shop.example:**"),
        ("git status $IFS", "git *"),
        ("git log $'\\x2d-output=a'", "git *"),
        ("git add {a,b}", "git *"),
        ("git add a?", "git *"),
        ("topic/a:main", "topic/*"),
        ("topic/a+main", "topic/*"),
        ("tmp_a, users", "tmp_*"),
        ("tmp_a JOIN users", "tmp_*"),
        ("tmp_a%20JOIN", "tmp_*"),
        ("bad.example\u2100.shop.example", "*.shop.example"),
        ("notes/%TEMP%", "notes/*"),
    ],
)
def test_a_value_with_another_reading_is_not_allowed(value: Any, pattern: str):
    assert not fits(value, pattern)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("ann+x@shop.example", "*@shop.example"),
        ("https://a.shop.example:8443/b?c=d#e", "https://*.shop.example:8443/**"),
        ("http://[::1]:8000/a", "http://[::1]:8000/**"),
        ("s3://bucket/a/b", "s3://bucket/**"),
        ("git@shop.example:a/b.git", "git@shop.example:a/*"),
        ("notes/100%.txt", "notes/*"),
        ("notes/\u00dc_\u0928\u093f-2.b", "notes/*"),
        ("git log --since=2024-01-01 'a b'", "git log *"),
        ("pkg==1.2", "pkg==*"),
    ],
)
def test_a_value_with_one_reading_is_allowed(value: Any, pattern: str):
    assert fits(value, pattern)


@pytest.mark.parametrize(
    ("value", "allowed", "matched"),
    [
        (0, True, True),
        (100, True, True),
        (100.5, False, False),
        (-1, False, False),
        ("1e2", False, True),
        ("a lot", False, True),
        (True, False, True),
        ([5, 500], False, True),
    ],
)
def test_numbers_are_compared(value: Any, *, allowed: bool, matched: bool):
    assert fits(value, ">= 0, <= 100") is allowed
    assert may_fit(value, ">= 0, <= 100") is matched
