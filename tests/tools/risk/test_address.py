"""What counts as an address outside of this machine."""

from typing import Any

import pytest

from packetgate.tools.risk.arguments import outside_address


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("url", "https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("text", "see http://example.org for more", "http://example.org"),
        ("HOST", "example.org:8080", "example.org:8080"),
        ("endpoint", "192.0.2.1", "192.0.2.1"),
        ("host", "[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("url", "http://192.0.2.1/x", "http://192.0.2.1/x"),
        ("url", "http://localhost.example.org/", "http://localhost.example.org/"),
        ("url", "http://127.0.0.1@example.org/", "http://127.0.0.1@example.org/"),
        ("url", "http://[::1/", "http://[::1/"),
        ("recipients", ["ann", "bob@example.org"], "bob@example.org"),
        ("request", {"headers": {}, "target": ["ftp://example.org"]}, "ftp://example.org"),
        ("cluster", "mongodb+srv://u:p@db.example.org/x", "mongodb+srv://u:p@db.example.org/x"),
    ],
)
def test_an_address_outside_is_found_wherever_it_stands(name: str, value: Any, found: str):
    assert outside_address(name, value) == found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "http://localhost:3000/x"),
        ("url", "http://127.0.0.1/x"),
        ("url", "http://[::1]:8000/"),
        ("uri", "file:///etc/hosts"),
        ("path", "notes.example.md"),
        ("text", "the host is example.org"),
        ("host", "localhost"),
        ("host", "127.0.0.1:80"),
        ("count", 3),
        ("options", {"verbose": True, "none": None}),
        ("url", ""),
    ],
)
def test_what_stays_on_this_machine_is_no_address_outside(name: str, value: Any):
    assert outside_address(name, value) == ""
