"""The host that an address names for every program."""

import pytest

from packetgate.tools.text.hosts import fits_host, host_in


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://Example.org/a?b=1#c", "example.org"),
        ("example.org:8080/a", "example.org"),
        ("example.org.", "example.org"),
        ("https://[::1]:80/", "::1"),
        ("192.0.2.7", "192.0.2.7"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("localhost", "localhost"),
    ],
)
def test_an_address_has_one_host_for_every_program(address: str, host: str):
    assert host_in(address) == host


ODD = [
    *("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.0x1"),  # numbers that some programs parse as an IP
    *("https://example.org@evil.example/", "https://example.org\\@evil.example/", "example.org:80@evil.example"),
    *("https:\\\\evil.example", "//evil.example", "https:evil.example", "https:///evil.example", "example.org:evil"),
    *("evil.example .org", " evil.example", "evil dot example", "evil%2eexample", "evil\u200b.example"),
    *("\uff45vil.example", "evil\u3002example", "faß.example", "a..b", "-a.example", ""),
    *("file:///etc/passwd", "javascript:fetch(1)", "data:text/plain,x"),
]


@pytest.mark.parametrize("address", ODD)
def test_an_address_that_programs_read_differently_has_no_host(address: str):
    assert host_in(address) == ""


@pytest.mark.parametrize(
    ("host", "fits"),
    [("a.example", True), ("b.a.example", False), ("x.b.example", True), ("b.example", False), ("xb.example", False)],
)
def test_a_pattern_matches_complete_labels(host: str, fits: bool):
    assert fits_host(host, ["a.example", "*.b.example"]) is fits
    assert fits_host("", ["a.example"]) is False
