"""How people say yes, no and "not now": in some forty languages, and in signs."""

import tomllib
from pathlib import Path

_BY_MEANING = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_WORDS = {
    meaning: frozenset(word.replace("_", " ") for word in words.split()) for meaning, words in _BY_MEANING.items()
}

YES = _WORDS["yes"] | {
    *("do it", "go for it", "run it", "just do it", "please do", "please do it"),
    *("vas-y", "allez-y", "mach das", "mach es", "bien sûr"),
}
RETRACTS = _WORDS["retract"] | {
    *("never mind", "forget it", "forget that", "leave it", "not now"),
    *("lass es", "lass das", "laisse tomber", "lascia stare", "déjalo"),
}
"""Of those that say no, what takes back what was said before it."""
NO = _WORDS["no"] | RETRACTS | {"do not", "no thanks", "no thank you", "no way", "no gracias"}
SKIP = _WORDS["skip"]
SESSION = frozenset({"session", "this session", "for this session", "yes for this session", "yes session"})
ALWAYS = frozenset({"always", "yes always", "always allow", "allow always"})
NEVER = frozenset({"never", "no never", "never allow", "deny always"})
HEARD = _WORDS["heard"]
"""Of those that say yes, what may only say that something was heard."""
THANKS = _WORDS["thanks"]
AROUND = _WORDS["around"] | THANKS
"""Words that may stand beside such a word and say nothing more."""
MERGED = frozenset(word for words in (*_WORDS.values(), NO) for word in words if word.count(" ") == 1)
"""Two words that are one."""
