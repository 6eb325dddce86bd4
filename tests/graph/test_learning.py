"""A turn teaches its user by what ran, and by nothing else."""

from langgraph.store.memory import InMemoryStore
from support.notebook import Notebook
from support.scripted_deciders import call, scripted
from support.usage import recording

from packetgate.tools.usage.store import LEARNED

READ, WRITE, WEATHER = "notebook.read_note", "notebook.write_note", "notebook.check_weather"


async def test_what_ran_teaches_and_what_failed_or_was_denied_does_not(notebook: Notebook) -> None:
    store = InMemoryStore()
    deciders = scripted(call(READ, name="a"), call(WEATHER, city="Bern"), call(WRITE, name="a", text="x"))
    async with recording(deciders, store, notebook, allow_write_tools=True, max_reinjections=1) as talk:
        await talk.say("Cheer me up with a")
        await talk.say("Is it nice out in Bern")
        await talk.ask("Jot it down")
        await talk.reply("no")
    assert [item.value["tool"] for item in await store.asearch(LEARNED)] == [READ]
