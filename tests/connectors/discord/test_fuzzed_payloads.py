"""For messages and presses with any content, the bot continues and logs no error."""

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.discord_bots import Workshop
from support.discord_payloads import ADA, ADAS, BEN, BOT, LOBBY, interaction, new_id
from support.discord_server import DiscordStandIn
from support.fuzzing import fuzzed
from support.fuzzing import texts as any_texts

CONFIG = {
    "allowed": {"users": [ADA]},
    "writes": {"users": [ADA]},
    "approvers": {"users": [ADA]},
    "rate": {"turns": 10_000},
}
PRESSES = [f"packetgate:{action}:{'0' * 32}:1" for action in ("approve", "reject")]

texts = any_texts.map(lambda text: text.encode(errors="replace").decode())
"""Discord never sends half a surrogate pair."""
custom_ids = texts | st.sampled_from([*PRESSES, "packetgate:approve", "packetgate:always:" + "a" * 31 + "٣"])
messages = st.fixed_dictionaries(
    {"content": texts | st.sampled_from(["Read plan.txt", f"<@{BOT}>", "Write x to y.txt", "never"])},
    optional={
        "files": st.lists(st.tuples(texts, st.binary(max_size=20)), max_size=7),
        "mentions": st.just([BOT]),
        "to": st.just(True),
    },
)
presses = st.one_of(
    st.tuples(st.just(3), st.fixed_dictionaries({"custom_id": custom_ids, "component_type": st.just(2)})),
    st.tuples(
        st.just(2),
        st.fixed_dictionaries({"id": st.just("1"), "name": st.just("reset"), "type": st.just(1)}),
    ),
)


def drawn(strategy: st.SearchStrategy[Any], examples: int, nightly: int) -> list[Any]:
    """Return reproducible examples."""
    found: list[Any] = []

    @fuzzed(examples, nightly)
    @given(value=strategy)
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return found


@pytest.mark.slow
async def test_the_bot_continues_after_any_payload(
    discord: DiscordStandIn, workshop: Workshop, caplog: pytest.LogCaptureFixture
):
    said, pressed = drawn(messages, 40, 400), drawn(presses, 60, 600)
    caplog.set_level(logging.ERROR)
    async with workshop.bot(CONFIG) as bot:
        for number, message in enumerate(said):
            files = [discord.attach(name, data) for name, data in message.pop("files", [])]
            earlier = discord.keep(BEN, LOBBY, message["content"]) if message.pop("to", False) else None
            where = LOBBY if earlier or number % 2 else ADAS
            more = {"to": earlier} if earlier else {}
            await discord.say(ADA, where, message.pop("content"), attachments=files, **message, **more)
        about = discord.keep(BOT, ADAS, "May this run?", components=[])
        for kind, data in pressed:
            sent = interaction(ADA, ADAS, kind, data, about if kind != 2 else None)
            await discord.gateway.dispatch("INTERACTION_CREATE", sent)
        await discord.say(ADA, ADAS, "never mind")
        await discord.say(ADA, ADAS, "Read plan.txt", nonce=new_id())
        await discord.answer(ADAS, "opens at seven")
        assert not bot.is_closed()
    assert not caplog.records
