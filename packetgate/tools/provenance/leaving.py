"""What of earlier outputs a read would carry outside, in whatever form."""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote_plus

from packetgate.tools.provenance.evidence import Evidence, Passage
from packetgate.tools.provenance.values import find, folded, squeezed
from packetgate.tools.text.words import STOP_WORDS

SHINGLE = 3
"""Words in a row that are a phrase of somebody's, not anybody's."""
SHINGLE_CHARS = 14
RUN = 12
"""Letters and digits in a row, whatever stands between them."""
MAX_WORDS = 4_000
TOKEN = 6
"""Characters of the shortest token with a digit in it, such as a key, that is known in part."""

_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[^\s\"'<>(){}\[\],;]+")


@dataclass(frozen=True)
class Carried:
    """What was found again, and where it stands; in a field it has no place."""

    tool: str
    said: str
    passage: Passage | None = None
    start: int = 0
    end: int = 0


def carried(texts: Iterable[str], evidence: Evidence, *, together: bool = False) -> Carried | None:
    """Return something that stands in an earlier output, not in the user's words, and in one of these texts.

    Together, they are looked at as one, after all that earlier reads of the turn sent.
    """
    told = [*texts]
    for text in ["".join([*evidence.sent, *told])] if together else told:
        for form in forms_of(text):
            found = _whole(form, evidence) or _in_part(form, evidence)
            if found:
                return found
    return None


def _whole(form: str, evidence: Evidence) -> Carried | None:
    words = folded(form).strip(" .,;:!?\"'")
    if len(words) < 3 or words in STOP_WORDS or evidence.user.say(words):
        return None
    return _standing(words, evidence, fields=True)


def _in_part(form: str, evidence: Evidence) -> Carried | None:
    words = folded(form)
    for needle in dict.fromkeys([*shingles(words), *_tokens(words)]):
        if not evidence.user.say(needle):
            found = _standing(needle, evidence, fields=True)
            if found:
                return found
    return _squeezed(words, evidence)


def shingles(words: str) -> Iterator[str]:
    """Yield phrases of a text, with what stands between their words."""
    places = [(one.start(), one.end()) for one in _WORD.finditer(words)][:MAX_WORDS]
    for first, last in zip(places, places[SHINGLE - 1 :], strict=False):
        phrase = words[first[0] : last[1]]
        if len(phrase) >= SHINGLE_CHARS and sum(one not in STOP_WORDS for one in _WORD.findall(phrase)) > 1:
            yield phrase


def _tokens(words: str) -> Iterator[str]:
    """Yield what has digits in it, or is an address, such as a code, a key, a number."""
    for one in _TOKEN.findall(words)[:MAX_WORDS]:
        token = one.strip(".:!?&=/")
        parts = [token, *re.split(r"[=&/?:#]", token)]
        yield from (part for part in parts if len(part) >= 4 and ("@" in part or any(map(str.isdigit, part))))


def _standing(needle: str, evidence: Evidence, *, fields: bool) -> Carried | None:
    for passage in evidence.passages:
        at = find(passage.folded, needle)
        if at < 0 and len(needle) >= TOKEN and any(map(str.isdigit, needle)) and " " not in needle:
            at = passage.folded.find(needle)
        if at >= 0:
            return Carried(passage.tool, needle, passage, at, at + len(needle))
    for one in evidence.fields if fields else ():
        if needle == one.text or (len(needle) >= TOKEN and find(one.text, needle) >= 0):
            return Carried(one.tool, needle)
    return None


def _squeezed(words: str, evidence: Evidence) -> Carried | None:
    """Return what stands in an output letter for letter, with other signs between them, or none."""
    letters = squeezed(words)
    said = squeezed(evidence.user.folded)
    runs = [letters[at : at + RUN] for at in range(0, len(letters) - RUN + 1, RUN // 2)][:MAX_WORDS]
    wanted = [run for run in runs if run not in said]
    for tool, text in evidence.letters if wanted or len(letters) >= TOKEN else ():
        run = next((run for run in wanted if run in text), "")
        if run:
            return Carried(tool, run)
    for tool, token in evidence.secrets:
        if token in letters and token not in said:
            return Carried(tool, token)
    return None


ROUNDS = 2
MAX_CHARS = 20_000
MAX_FORMS = 16

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}={0,6}", re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:]?){6,}")
_CODES = re.compile(r"\d{2,3}(?:[\s,.;_-]+\d{2,3}){5,}")


def forms_of(text: str) -> list[str]:
    """Return a text, and what it says in each code that it may be in, twice over."""
    found = dict.fromkeys([text[:MAX_CHARS]])
    newest = list(found)
    for _ in range(ROUNDS):
        newest = [form for one in newest for form in _decoded(one) if form not in found][: MAX_FORMS - len(found)]
        found.update(dict.fromkeys(newest))
    return [*found, *(one[::-1] for one in [*found])]


def _decoded(text: str) -> Iterator[str]:
    unquoted = unquote_plus(text)
    if unquoted != text:
        yield unquoted
    yield codecs.encode(text, "rot13")
    for pattern, decode in ((_HEX, _from_hex), (_BASE64, _from_base64), (_BASE32, _from_base32), (_CODES, _from_codes)):
        parts = [said for one in pattern.finditer(text) if (said := decode(one[0]))]
        if parts:
            yield " ".join(parts)
    squeezed = re.sub(r"[^A-Za-z0-9+/_=-]", "", text)
    if squeezed != text and (whole := _from_base64(squeezed)):
        yield whole


def _from_base64(text: str) -> str:
    """Return what a run of characters says wherever it begins: what stands before it may be of its alphabet, too."""
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    said = (_aligned_base64(bare[at:]) for at in range(4))
    return " ".join(one for one in said if one)


def _aligned_base64(bare: str) -> str:
    whole = bare[: len(bare) - (len(bare) % 4 == 1)]
    return _text_of(lambda: base64.b64decode(whole + "=" * (-len(whole) % 4)))


def _from_base32(text: str) -> str:
    bare = text.rstrip("=").upper()
    return _text_of(lambda: base64.b32decode(bare + "=" * (-len(bare) % 8)))


def _from_hex(text: str) -> str:
    return _text_of(lambda: bytes.fromhex(re.sub(r"[^0-9a-fA-F]", "", text)))


def _from_codes(text: str) -> str:
    codes = [int(one) for one in re.findall(r"\d+", text)]
    return "".join(map(chr, codes)) if all(9 <= one < 127 for one in codes) else ""


def _text_of(decode: Callable[[], bytes]) -> str:
    try:
        text = decode().decode("utf-8", errors="replace")
    except (ValueError, binascii.Error):
        return ""
    readable = sum((char.isprintable() and char != "\ufffd") or char.isspace() for char in text)
    return text if len(text) >= 4 and readable >= 0.9 * len(text) else ""
