"""The words in which a request names a path."""

import pytest

from packetgate.tools.text.named_paths import words_for_path


@pytest.mark.parametrize(
    ("path", "request_", "words"),
    [
        ("logs/server.log", "every line with ERROR in server.log, please", "server.log"),
        ("logs/server.log", "look into the server log", "server log"),
        ("logs/server.log", "look into logs\\server.log", "logs\\server.log"),
        ("README.md", "show me the readme", "readme"),
        ("notes/garden.md", "what stands in my garden notes?", "garden notes"),
        ("letters/landlord.txt", "the letter to the landlord", "letter to the landlord"),
        ("C:\\work\\plan.txt", "read Plan.TXT", "Plan.TXT"),
        ("/srv/a plan/b.txt", "read /srv/a plan/b.txt", "/srv/a plan/b.txt"),
        ("/etc/hosts", "read backup/etc/hosts", ""),
        ("/", "list /", ""),
        ("logs/server.log", "read server.log.1", ""),
        ("logs/server.log", "read webserver.log", ""),
        ("logs/server.log", "read my-server.log", ""),
        ("logs/server.log", "read old/server.log", ""),
        ("drafts/letter.txt", "read it", ""),
        ("notes/ab.md", "ab", ""),
        ("milk and eggs", "buy milk and eggs", ""),
        ("garden/my plan.md", "the plan of the garden", ""),
        ("todo.txt", "what is on my to-do list?", "to-do"),
        ("todo.txt", "what is on my to do list?", "to do"),
        ("drafts/letter-landlord.txt", "open the letter to my landlord", "letter to my landlord"),
        ("drafts/letter-landlord.txt", "write a letter and call the landlord", ""),
        ("garden/my plan.md", "my garden plan", "my garden plan"),
    ],
)
def test_a_path_is_named_by_its_last_parts_or_by_the_words_of_its_name(path: str, request_: str, words: str):
    assert words_for_path(path, request_) == words
