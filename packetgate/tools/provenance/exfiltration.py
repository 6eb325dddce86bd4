"""Detect earlier tool output in outbound arguments, also encoded or in parts."""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote_plus

from packetgate.tools.provenance.sources import Finding, SourceTexts, TextPlace
from packetgate.tools.provenance.values import find_words, fold_text, squeeze_text
from packetgate.tools.text.words import STOP_WORDS

_PHRASE_WORDS = 3
_PHRASE_CHARS = 14
_RUN_CHARS = 12
"""Number of letters and digits in a row that identify a text, regardless of the characters between them."""
_TOKEN_CHARS = 6
"""Length of the shortest token with a digit, such as a key, that is detected inside a longer token."""
_MAX_WORDS = 4_000
_MAX_CHARS = 20_000
_MAX_FORMS = 16
_ROUNDS = 2

_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[^\s\"'<>(){}\[\],;]+")


def find_leak(texts: Iterable[str], sources: SourceTexts, *, together: bool = False) -> Finding | None:
    """Return a finding if one of these texts contains a part of an earlier output that the user did not state.

    With `together`, the texts count as one text, appended to what earlier calls of the turn sent.
    """
    for text in ["".join([*sources.sent, *texts])] if together else texts:
        for form in _forms_of(text):
            if leak := _leak_in_form(form, sources):
                return leak
    return None


def phrases_in(words: str) -> Iterator[str]:
    """Yield the phrases of a text, with the characters between their words."""
    spans = [match.span() for match in _WORD.finditer(words)][:_MAX_WORDS]
    for first, last in zip(spans, spans[_PHRASE_WORDS - 1 :], strict=False):
        phrase = words[first[0] : last[1]]
        if len(phrase) >= _PHRASE_CHARS and sum(word not in STOP_WORDS for word in _WORD.findall(phrase)) > 1:
            yield phrase


def _leak_in_form(form: str, sources: SourceTexts) -> Finding | None:
    words = fold_text(form)
    whole = words.strip(" .,;:!?\"'")
    needles = [whole] if len(whole) >= 3 and whole not in STOP_WORDS else []
    for needle in dict.fromkeys([*needles, *phrases_in(words), *_tokens(words)]):
        if not sources.user.contain(needle) and (leak := _output_with(needle, sources)):
            return leak
    return _squeezed_leak(words, sources)


def _leak(tool: str, part: str, place: TextPlace | None = None) -> Finding:
    return Finding(f"it sends outside what {tool} returned", place, part)


def _tokens(words: str) -> Iterator[str]:
    for match in _TOKEN.findall(words)[:_MAX_WORDS]:
        token = match.strip(".:!?&=/")
        for part in (token, *re.split(r"[=&/?:#]", token)):
            if len(part) >= 4 and ("@" in part or any(map(str.isdigit, part))):
                yield part


def _output_with(needle: str, sources: SourceTexts) -> Finding | None:
    is_long = len(needle) >= _TOKEN_CHARS
    is_token = is_long and any(map(str.isdigit, needle)) and " " not in needle
    for passage in sources.passages:
        at = find_words(passage.folded, needle)
        if at < 0 and is_token:
            at = passage.folded.find(needle)
        if at >= 0:
            return _leak(passage.tool, needle, TextPlace(passage, at, at + len(needle)))
    for field in sources.fields:
        if needle == field.text or (is_long and find_words(field.text, needle) >= 0):
            return _leak(field.tool, needle)
    return None


def _squeezed_leak(words: str, sources: SourceTexts) -> Finding | None:
    letters, known = squeeze_text(words), squeeze_text(sources.user.folded)
    runs = [letters[at : at + _RUN_CHARS] for at in range(0, len(letters) - _RUN_CHARS + 1, _RUN_CHARS // 2)][
        :_MAX_WORDS
    ]
    unknown = [run for run in runs if run not in known]
    for tool, text in sources.letters if unknown else ():
        run = next((run for run in unknown if run in text), "")
        if run:
            return _leak(tool, run)
    for tool, token in sources.secrets:
        if token in letters and token not in known:
            return _leak(tool, token)
    return None


def _forms_of(text: str) -> list[str]:
    forms = dict.fromkeys([text[:_MAX_CHARS]])
    newest = list(forms)
    for _ in range(_ROUNDS):
        newest = [form for text in newest for form in _decoded(text) if form not in forms][: _MAX_FORMS - len(forms)]
        forms.update(dict.fromkeys(newest))
    return [*forms, *(form[::-1] for form in forms)]


def _decoded(text: str) -> Iterator[str]:
    unquoted = unquote_plus(text)
    if unquoted != text:
        yield unquoted
    yield codecs.encode(text, "rot13")
    for pattern, decode in _DECODERS:
        if parts := [part for part in map(decode, pattern.findall(text)) if part]:
            yield " ".join(parts)
    bare = re.sub(r"[^A-Za-z0-9+/_=-]", "", text)
    if bare != text and (whole := _from_base64(bare)):
        yield whole


def _from_base64(text: str) -> str:
    """Return the texts decoded from each of the first four characters: a prefix may look like base64 too."""
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    aligned = [bare[at : len(bare) - ((len(bare) - at) % 4 == 1)] for at in range(4)]
    decoded = [_text_of(base64.b64decode, part + "=" * (-len(part) % 4)) for part in aligned]
    return " ".join(filter(None, decoded))


def _from_codes(text: str) -> str:
    codes = [int(code) for code in re.findall(r"\d+", text)]
    return "".join(map(chr, codes)) if all(9 <= code < 127 for code in codes) else ""


def _text_of(decode: Callable[[str], bytes], encoded: str) -> str:
    try:
        text = decode(encoded).decode("utf-8", errors="replace")
    except (ValueError, binascii.Error):
        return ""
    readable = sum((char.isprintable() and char != "\ufffd") or char.isspace() for char in text)
    return text if len(text) >= 4 and readable >= 0.9 * len(text) else ""


_DECODERS: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (
        re.compile(r"(?:[0-9a-fA-F]{2}[\s:]?){6,}"),
        lambda text: _text_of(bytes.fromhex, re.sub(r"[^0-9a-fA-F]", "", text)),
    ),
    (re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}"), _from_base64),
    (
        re.compile(r"[A-Z2-7]{16,}", re.IGNORECASE),
        lambda text: _text_of(base64.b32decode, text.upper() + "=" * (-len(text) % 8)),
    ),
    (re.compile(r"\d{2,3}(?:[\s,.;_-]+\d{2,3}){5,}"), _from_codes),
)
