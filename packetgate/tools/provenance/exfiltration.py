"""Detect earlier tool output in outbound arguments, also if it is encoded or split."""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote_plus

from packetgate.tools.provenance.sources import FlagReason, SourceTexts, TextPlace
from packetgate.tools.provenance.values import alphanumerics_of, find_words, fold_text
from packetgate.tools.text.words import STOP_WORDS

_PHRASE_WORDS = 3
_PHRASE_CHARS = 14
_RUN_CHARS = 12
"""Number of consecutive letters and digits that identify a text; other characters between them do not count."""
_TOKEN_CHARS = 6
"""Length of the shortest token with a digit, such as a key, that is detected inside a longer token."""
_MAX_WORDS = 4_000
_MAX_CHARS = 20_000
_MAX_DECODINGS = 16
_DECODING_ROUNDS = 2

_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[^\s\"'<>(){}\[\],;]+")


def find_leak(texts: Iterable[str], sources: SourceTexts, *, together: bool = False) -> FlagReason | None:
    """Return a reason if one of these texts contains a part of an earlier output that the user did not state.

    With `together`, all texts count as one text, after the texts that earlier calls of the turn sent outside.
    """
    for text in ["".join([*sources.sent, *texts])] if together else texts:
        for decoding in _decodings_of(text):
            if reason := _leak_in_text(decoding, sources):
                return reason
    return None


def phrases_in(words: str) -> Iterator[str]:
    """Yield the phrases of a text: three words in a row of which at least two are not stop words."""
    spans = [match.span() for match in _WORD.finditer(words)][:_MAX_WORDS]
    for first, last in zip(spans, spans[_PHRASE_WORDS - 1 :], strict=False):
        phrase = words[first[0] : last[1]]
        if len(phrase) >= _PHRASE_CHARS and sum(word not in STOP_WORDS for word in _WORD.findall(phrase)) > 1:
            yield phrase


def _leak_in_text(text: str, sources: SourceTexts) -> FlagReason | None:
    words = fold_text(text)
    whole = words.strip(" .,;:!?\"'")
    needles = [whole] if len(whole) >= 3 and whole not in STOP_WORDS else []
    for needle in dict.fromkeys([*needles, *phrases_in(words), *_tokens(words)]):
        if not sources.user.contain(needle) and (reason := _find_in_outputs(needle, sources)):
            return reason
    return _alphanumeric_leak(words, sources)


def _leak_reason(tool: str, part: str, place: TextPlace | None = None) -> FlagReason:
    return FlagReason(f"it sends output of {tool} to an external service", place, part)


def _tokens(words: str) -> Iterator[str]:
    for match in _TOKEN.findall(words)[:_MAX_WORDS]:
        token = match.strip(".:!?&=/")
        for part in (token, *re.split(r"[=&/?:#]", token)):
            if len(part) >= 4 and ("@" in part or any(map(str.isdigit, part))):
                yield part


def _find_in_outputs(needle: str, sources: SourceTexts) -> FlagReason | None:
    is_long = len(needle) >= _TOKEN_CHARS
    is_token = is_long and any(map(str.isdigit, needle)) and " " not in needle
    for source in sources.free_texts:
        at = find_words(source.folded, needle)
        if at < 0 and is_token:
            at = source.folded.find(needle)
        if at >= 0:
            return _leak_reason(source.tool, needle, TextPlace(source, at, at + len(needle)))
    for field in sources.fields:
        if needle == field.text or (is_long and find_words(field.text, needle) >= 0):
            return _leak_reason(field.tool, needle)
    return None


def _alphanumeric_leak(words: str, sources: SourceTexts) -> FlagReason | None:
    letters, known = alphanumerics_of(words), alphanumerics_of(sources.user.folded)
    runs = [letters[at : at + _RUN_CHARS] for at in range(0, len(letters) - _RUN_CHARS + 1, _RUN_CHARS // 2)][
        :_MAX_WORDS
    ]
    unknown = [run for run in runs if run not in known]
    for tool, text in sources.alphanumerics if unknown else ():
        run = next((run for run in unknown if run in text), "")
        if run:
            return _leak_reason(tool, run)
    for tool, token in sources.secrets:
        if token in letters and token not in known:
            return _leak_reason(tool, token)
    return None


def _decodings_of(text: str) -> list[str]:
    """Return a text, its decodings, and all of them reversed."""
    decodings = dict.fromkeys([text[:_MAX_CHARS]])
    newest = list(decodings)
    for _ in range(_DECODING_ROUNDS):
        new = [decoded for text in newest for decoded in _decode_once(text) if decoded not in decodings]
        newest = new[: _MAX_DECODINGS - len(decodings)]
        decodings.update(dict.fromkeys(newest))
    return [*decodings, *(decoded[::-1] for decoded in decodings)]


def _decode_once(text: str) -> Iterator[str]:
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
    """Return the texts decoded from each of the first four characters, because a prefix may also look like base64."""
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    aligned = [bare[at : len(bare) - ((len(bare) - at) % 4 == 1)] for at in range(4)]
    decoded = [_decode_text(base64.b64decode, part + "=" * (-len(part) % 4)) for part in aligned]
    return " ".join(filter(None, decoded))


def _from_codes(text: str) -> str:
    codes = [int(code) for code in re.findall(r"\d+", text)]
    return "".join(map(chr, codes)) if all(9 <= code < 127 for code in codes) else ""


def _decode_text(decode: Callable[[str], bytes], encoded: str) -> str:
    try:
        text = decode(encoded).decode("utf-8", errors="replace")
    except (ValueError, binascii.Error):
        return ""
    readable = sum((char.isprintable() and char != "\ufffd") or char.isspace() for char in text)
    return text if len(text) >= 4 and readable >= 0.9 * len(text) else ""


_DECODERS: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (
        re.compile(r"(?:[0-9a-fA-F]{2}[\s:]?){6,}"),
        lambda text: _decode_text(bytes.fromhex, re.sub(r"[^0-9a-fA-F]", "", text)),
    ),
    (re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}"), _from_base64),
    (
        re.compile(r"[A-Z2-7]{16,}", re.IGNORECASE),
        lambda text: _decode_text(base64.b32decode, text.upper() + "=" * (-len(text) % 8)),
    ),
    (re.compile(r"\d{2,3}(?:[\s,.;_-]+\d{2,3}){5,}"), _from_codes),
)
