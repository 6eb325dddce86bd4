"""`benchmarks.found` parses its rows."""

import json
from pathlib import Path

from benchmarks.found.__main__ import read_rows


def test_a_row_may_hold_any_line_end_but_a_line_feed(tmp_path: Path) -> None:
    rows = [{"text": f"a{end}b"} for end in ("\u2028", "\u2029", "\x85", "\r\n", "\n")]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    assert read_rows(tmp_path / "rows.jsonl") == rows
