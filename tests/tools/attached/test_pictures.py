"""Pictures by their headers alone."""

from hashlib import sha256
from pathlib import Path

import pytest
from support.pictures import gif, jpeg, png, webp

from packetgate.state.sections import Attachment
from packetgate.tools.attached.media import MAX_PICTURE_BYTES, picture_problem, picture_type, stored_picture
from packetgate.tools.text.result_store import ResultStore, session_results

FORMS = {
    "png": ("image/png", png),
    "gif": ("image/gif", gif),
    "jpeg": ("image/jpeg", jpeg),
    "VP8X": ("image/webp", lambda width, height: webp("VP8X", width, height)),
    "VP8L": ("image/webp", lambda width, height: webp("VP8L", width, height)),
    "VP8": ("image/webp", lambda width, height: webp("VP8 ", width, height)),
}


@pytest.mark.parametrize("form", FORMS)
def test_type_and_size_are_read_from_the_header(form: str) -> None:
    kind, make = FORMS[form]
    small, large = make(640, 480), make(16_000, 9_000)
    assert picture_type(small) == kind
    assert picture_problem(kind, small) == ""
    assert "16,000 by 9,000 pixels" in picture_problem(kind, large)


@pytest.mark.parametrize("form", FORMS)
def test_a_truncated_header_is_refused(form: str) -> None:
    kind, make = FORMS[form]
    whole = make(640, 480)
    problems = [picture_problem(kind, whole[:length]) for length in range(len(whole))]
    assert problems[0] == problems[9] == "the picture is broken"
    assert set(problems) <= {"", problems[0]}


def test_the_size_is_limited() -> None:
    assert picture_problem("image/png", png().ljust(MAX_PICTURE_BYTES + 1)) == "it has 5.0 MB, the limit is 5.0 MB"


def test_only_unchanged_pictures_of_the_session_are_returned(tmp_path: Path) -> None:
    kept, data = ResultStore(tmp_path), png()
    with session_results("one"):
        handle = kept.keep(data)
    known = {"mime_type": "image/png", "size": len(data), "sha256": sha256(data).hexdigest()}
    one = Attachment(name="a.png", handle=handle, **known)
    assert stored_picture(one, kept, "one") == data
    assert stored_picture(one, kept, "another") is None
    (file,) = [file for file in tmp_path.rglob("*") if file.is_file()]
    file.write_bytes(png(shade=9))
    assert stored_picture(one, kept, "one") is None
    file.unlink()
    assert stored_picture(one, kept, "one") is None
