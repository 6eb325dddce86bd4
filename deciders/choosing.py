"""Which decider serves each stage, given the models there are."""

from deciders.fallback import FallbackIntent, FallbackResponder, FallbackSelector
from deciders.language.answer import LanguageResponder
from deciders.language.intent import LanguageIntent
from deciders.language.prompting import ModelSource
from deciders.language.review import LanguageReviewer
from deciders.language.selection import LanguageSelector
from deciders.protocols import Deciders
from deciders.reflex.answer import ReflexResponder
from deciders.reflex.intent import ReflexIntent
from deciders.reflex.review import ReflexReviewer
from deciders.reflex.selection import ReflexSelector


def reflex_deciders() -> Deciders:
    """Return deciders that need no model."""
    return Deciders(ReflexIntent(), ReflexSelector(), ReflexReviewer(), ReflexResponder())


def language_deciders(lite: ModelSource, prime: ModelSource) -> Deciders:
    """Return deciders by model: `lite` for intent and selection, `prime` for review and answer."""
    reflex = reflex_deciders()
    return Deciders(
        intent=FallbackIntent(LanguageIntent(lite), reflex.intent),
        selector=FallbackSelector(LanguageSelector(lite), reflex.selector),
        reviewer=LanguageReviewer(prime),
        responder=FallbackResponder(LanguageResponder(prime), reflex.responder),
    )
