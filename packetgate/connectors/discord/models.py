"""The models that the bot can switch among."""

import logging
from pathlib import PurePath

from packetgate.connectors.discord.config import MAX_LABEL_CHARS, LiveConfig
from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError, ModelError

log = logging.getLogger(__name__)

NO_MODEL = "No language model is configured. Type commands, such as `/help` after the mention."
NOT_AN_OWNER = "Only the owners in `[discord.owners]` may switch the model."


class ModelChoice:
    """The model of all conversations: that of the settings, or one of `[discord.models]`."""

    def __init__(self, sessions: Sessions, settings: Settings, live: LiveConfig) -> None:
        self._sessions, self._live = sessions, live
        names = dict.fromkeys(name for name in (settings.lite, settings.prime) if name != "reflex")
        label = " + ".join(PurePath(name.partition("?")[0]).name for name in names)
        self._own = {label[-MAX_LABEL_CHARS:]: ""} if label else {}
        self._chosen = self._used = ""

    @property
    def choices(self) -> dict[str, str]:
        """Maps each label to a model name, empty for the settings' model. The first one is used until a change."""
        return self._own | self._live.config.models

    @property
    def current(self) -> str:
        """The label of the model in use; empty without a model."""
        return self._chosen if self._chosen in self.choices else next(iter(self.choices), "")

    async def apply(self, label: str = "") -> None:
        """Use a model in later turns. Raise ModelError or ConfigError if the model cannot be used."""
        label = label or self.current
        name = self.choices.get(label, "")
        if name != self._used and self._sessions.use_model is not None:
            await self._sessions.use_model(name)
            log.info("the model is %s", label or "none")
        self._chosen, self._used = label, name

    async def answer(self, label: str, *, is_owner: bool) -> str:
        """Switch to a model if that is allowed; return a text with the model in use and the other models."""
        problem = ""
        if label and label != self.current:
            problem = NOT_AN_OWNER if not is_owner else "" if label in self.choices else "There is no such model."
            try:
                await self.apply("" if problem else label)
            except (ConfigError, ModelError) as error:
                problem = str(error)
        others = [f"`{one}`" for one in self.choices if one != self.current]
        rest = f"Others: {', '.join(others)}." if others else "It is the only one that is configured."
        return f"{problem}\n" * bool(problem) + (f"The model is `{self.current}`. {rest}" if self.choices else NO_MODEL)
