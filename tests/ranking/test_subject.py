"""The subject of a request, and its change."""

import pytest

from packetgate.ranking.subject import subject_of


@pytest.mark.parametrize(
    ("request_", "terms", "verbs", "outside"),
    [
        ("List my tasks", {"tasks"}, {"list"}, False),
        ("Please show me the latest task details", {"task"}, {"show"}, False),
        ("Send a letter and create a task", {"letter", "task"}, {"send", "create"}, False),
        ("Search the web for lighthouses", {"web", "lighthouses"}, {"search"}, True),
        ("What does https://example.com/a say?", {"https", "example", "com", "say"}, set(), True),
        ("What is in the news?", {"news"}, set(), True),
        ("Is it a website, or a webbing of sites?", {"website", "webbing", "sites"}, set(), True),
        ("Order the cobwebs by size", {"order", "cobwebs", "size"}, set(), False),
        ("and that?", set(), set(), False),
        ("", set(), set(), False),
    ],
)
def test_a_subject_has_terms_verbs_and_reach(request_: str, terms: set[str], verbs: set[str], outside: bool):
    subject = subject_of(request_)
    assert (subject.terms, subject.verbs, subject.outside) == (terms, verbs, outside)
    assert subject.is_known is bool(terms or verbs)
