"""Backslashes that a model did not escape."""

import json
from typing import Any

import pytest

from packetgate.tools.text.backslashes import restore_backslashes


@pytest.mark.parametrize(
    ("words", "written", "right"),
    [
        (r"list C:\temp\new", r'{"path": "C:\temp\new"}', {"path": r"C:\temp\new"}),
        (r"list C:\temp\new.", r'{"path": "C:\\temp\\new"}', {"path": r"C:\temp\new"}),
        (r"list C:\temp\new", r'{"path": "C:\\\\temp\\\\new"}', {"path": r"C:\temp\new"}),
        (r'read "D:\my files\report.txt"', r'{"path": "D:\\my files\report.txt"}', {"path": r"D:\my files\report.txt"}),
        (r"compare \\host\tables and a.txt", r'{"paths": ["\\\\host\tables", "a.txt"]}',
         {"paths": [r"\\host\tables", "a.txt"]}),
        (r"write 'see C:\temp' to a.txt", r'{"content": "see C:\temp", "n": 1}', {"content": r"see C:\temp", "n": 1}),
        ("write two lines to a.txt", r'{"content": "one\ntwo\tthree"}', {"content": "one\ntwo\tthree"}),
        (r"read C:\temp\a.txt and sort it", r'{"content": "\temporary"}', {"content": "\temporary"}),
    ],
)  # fmt: skip
def test_texts_with_backslashes_are_as_the_user_wrote_them(words: str, written: str, right: dict[str, Any]):
    assert restore_backslashes(json.loads(written), words) == right
