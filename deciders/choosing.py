"""Which decider serves each stage, given the models there are."""

from functools import partial

from deciders.fallback import FallbackIntent, FallbackResponder, FallbackSelector
from deciders.language.answer import LanguageResponder
from deciders.language.intent import LanguageIntent
from deciders.language.review import LanguageReviewer
from deciders.language.selection import LanguageSelector
from deciders.protocols import Deciders
from deciders.reflex.answer import ReflexResponder
from deciders.reflex.intent import ReflexIntent
from deciders.reflex.review import ReflexReviewer
from deciders.reflex.selection import ReflexSelector
from models.model import ModelSource
from state.errors import ModelError
from tools.text.tokens import ESTIMATE, TokenCounter


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
        tokens=partial(_counter_of, lite),
        lite=lite,
        prime=prime,
    )


async def _counter_of(model: ModelSource) -> TokenCounter:
    """Return the model's own counter, or the estimate where it has none at hand."""
    try:
        count = (await model()).token_counter
    except ModelError:
        return ESTIMATE  # who asks the model to decide tells what is wrong with it
    return TokenCounter(count, is_exact=True) if count else ESTIMATE
