import base64
from dataclasses import dataclass

import pytest

from packetgate.state import redaction
from packetgate.state.redaction import has_redaction_mark, learn_entry_secrets, redacted, redacted_data

VALUE = "zebra-crossing/77"


@dataclass(frozen=True)
class Case:
    """A text, a part that must be removed, and a part that must remain."""

    text: str
    hidden: str
    left: str = ""


HIDDEN = (
    Case(f"the key is {VALUE}.", VALUE, "the key is [redacted: A_TEST_API_KEY]."),
    Case("GET /?q=zebra-crossing%2F77", "zebra-crossing%2F77"),
    Case(base64.b64encode(VALUE.encode()).decode(), base64.b64encode(VALUE.encode()).decode()),
    Case("postgres is up at pass%word1", "pass%word1"),
    Case("ghp_" + "a1" * 18, "a1a1", "[redacted: GitHub token]"),
    Case("github_pat_" + "a1" * 20, "a1a1"),
    Case("AKIAIOSFODNN7EXAMPLE is in use", "IOSFODNN", "[redacted: AWS key] is in use"),
    Case("xoxb-123456789012-abcdef", "123456789012"),
    Case("sk-proj-" + "aB3_" * 10, "aB3_"),
    Case("glpat-" + "x1" * 10, "x1x1"),
    Case("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nafter", "MIIE", "after"),
    Case("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", "b3Blb"),
    Case("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "dozjg"),
    Case("Authorization: Bearer abcdefghijklmnop1234", "abcdefgh", "Authorization: Bearer [redacted: authorization]"),
    Case("clone https://me:hunter2@host/x", "hunter2", "https://me:[redacted: password]@host/x"),
    Case('{"api_key": "abcdef12345", "max_tokens": 500}', "abcdef", '"max_tokens": 500}'),
    Case("PORT=80\nDB_PASSWORD=change me\n", "change me", "PORT=80\nDB_PASSWORD=[redacted: DB_PASSWORD]\n"),
    Case("password: correct1horse", "correct1horse"),
)
KEPT = (
    "def f(password: str, token: Token = tokens[0]):\n    api_key = os.environ['X']\n",
    "self.secret = settings.secret\n",
    "the nextPageToken: abc123def456 leads on",
    "REF_TOKEN=${VAULT}\nEMPTY_SECRET=\n",
    "task-aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "passwords are hard: 12345678a",
    "see https://example.com/a@b and token: https://example.com/abc1",
    "a token is a word; the key to it: none",
)


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("A_TEST_API_KEY", VALUE)
    monkeypatch.setenv("A_TEST_TOKEN", "short")
    monkeypatch.setenv("SOME_AUTH", "/run/user/socket")
    monkeypatch.setenv("A_TEST_URL", "postgres://me:pass%word1@host/db")
    monkeypatch.setattr(redaction, "_learned", {})


@pytest.mark.parametrize("case", HIDDEN, ids=lambda case: case.text[:20])
def test_only_secrets_are_redacted(case: Case):
    found = redacted(case.text)
    assert case.hidden not in found
    assert case.left in found
    assert has_redaction_mark(found)
    assert redacted(found) == found


@pytest.mark.parametrize("text", KEPT, ids=range(len(KEPT)))
def test_text_that_only_resembles_a_secret_is_unchanged(text: str):
    assert redacted(text) == text


def test_fields_with_names_of_secrets_are_redacted():
    data = {
        "password": "x",
        "key": "PROJ-1",
        "pages": {"nextPageToken": "abc"},
        "all": [{"client_secret": "s", "n": 1}],
    }
    assert redacted_data(data) == data | {
        "password": "[redacted: password]",
        "all": [{"client_secret": "[redacted: client_secret]", "n": 1}],
    }


def test_secrets_of_a_server_entry_are_redacted():
    learn_entry_secrets(
        "far", {"env": {"MY_KEY": "value-one-1", "MODE": "value-two-2"}, "headers": {"X-Org": "value-three"}}
    )
    learn_entry_secrets(
        "far", {"headers": {"Authorization": "Bearer value-four-4", "accept": "text/plain"}, "auth": "five55555"}
    )
    redacted_text = redacted("value-one-1 value-two-2 value-three value-four-4 five55555 text/plain")
    assert redacted_text == (
        "[redacted: MY_KEY] value-two-2 [redacted: X-Org of far] [redacted: Authorization of far] "
        "[redacted: auth of far] text/plain"
    )


@pytest.mark.parametrize(
    "text", ["token", "-----BEGIN PRIVATE KEY-----", "a://b:c", "password=", '"', "eyJ.", "secret: a1", "key=\n"]
)
@pytest.mark.timeout(60)
def test_redaction_of_adversarial_text_takes_little_time(text: str):
    repeated = text * (400_000 // len(text))
    assert redacted(redacted(repeated)) == redacted(repeated)
