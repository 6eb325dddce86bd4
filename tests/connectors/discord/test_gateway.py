"""The connection to the gateway breaks, and nothing that was said meanwhile is lost."""

from support.discord_bots import ADA_ALONE, Workshop
from support.discord_gateway import IDENTIFY, RESUME
from support.discord_payloads import ADA, ADAS
from support.discord_server import DiscordStandIn


async def test_a_dropped_connection_resumes_where_it_was(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, ADAS, "Read plan.txt")
        await discord.answer(ADAS, "opens at seven")
        await discord.gateway.drop()
        await discord.say(ADA, ADAS, "Read todo.txt")
        await discord.answer(ADAS, "Buy milk")
        assert len(discord.by_bot(ADAS)) == 2
    identified, resumed = discord.gateway.received
    assert (identified[0], identified[1], resumed[0], resumed[1]) == ("/gateway", IDENTIFY, "/resume", RESUME)
