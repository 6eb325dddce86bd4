"""Only executed calls teach the ranking."""

from langgraph.store.memory import InMemoryStore
from support.notebook import Notebook
from support.scripted_deciders import call, scripted
from support.usage import recording

from packetgate.tools.usage.store import LEARNED

READ, WRITE, WEATHER = "notebook.read_note", "notebook.write_note", "notebook.check_weather"


async def test_executed_calls_are_learned_and_failed_or_denied_calls_are_not(notebook: Notebook) -> None:
    store = InMemoryStore()
    deciders = scripted(call(READ, name="a"), call(WEATHER, city="Bern"), call(WRITE, name="a", text="x"))
    async with recording(deciders, store, notebook, allow_write_tools=True, max_reinjections=1) as talk:
        await talk.say("Cheer me up with a")
        await talk.say("Is it nice out in Bern")
        await talk.ask("Jot it down")
        await talk.reply("no")
    assert [item.value["tool"] for item in await store.asearch(LEARNED)] == [READ]
