"""Drive the official `openai` client, with streamed chat completions and responses."""

import json
from collections.abc import Iterator

from benchmarks.clients.client import ASK, REPLIES, Client
from benchmarks.clients.model import NEXT, TAG, TITLE
from benchmarks.clients.place import Place, from_pypi, run

PLAY = """
import json, sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
tool = {"name": "look_up", "description": "Look something up", "parameters": {"type": "object", "properties": {}}}
told, chat = {}, [{"role": "system", "content": "Speak like a pirate."}]

def say(words):
    chat.append({"role": "user", "content": words})
    chunks = client.chat.completions.create(
        model="packetgate", messages=chat, stream=True, tools=[{"type": "function", "function": tool}]
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    chat.append({"role": "assistant", "content": text})
    return text

told["first"], told["second"] = say("What does plan.txt say?"), say("And what does later.txt say?")
told["replied"] = {}
for feature, (ask, reply) in json.loads(sys.argv[2]).items():
    before, asked, waiting, done = open("plan.txt").read(), say(ask), open("plan.txt").read(), say(reply)
    waits = "(question " in asked and waiting == before
    told["replied"][feature] = [waits, open("plan.txt").read().removeprefix(before).strip(), asked + " " + done]

said = []
for words in ("What does plan.txt say?", "And what does later.txt say?"):
    said.append({"role": "user", "content": words})
    with client.responses.stream(
        model="packetgate", instructions="Speak like a poet.", input=said, tools=[{"type": "function", **tool}]
    ) as events:
        written = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        response = events.get_final_response()
    said.append({"role": "assistant", "content": response.output_text})
    told.setdefault("responses", []).append(written if written == response.output_text else "cut")

quoted = "### Chat:\\n<chat_history>\\nUSER: Append x to plan.txt\\nASSISTANT: Done\\n</chat_history>"
told["background"] = [
    client.chat.completions.create(
        model="packetgate",
        messages=[{"role": "user", "content": f"### Task:\\nGenerate {what} for the chat as JSON: {form}\\n{quoted}"}],
    ).choices[0].message.content
    for what, form in (("a short title", '{"title": "..."}'), ("1-3 tags", '{"tags": ["..."]}'),
                       ("follow-up questions", '{"follow_ups": ["..."]}'))
]
print(json.dumps(told))
"""


def drive(place: Place) -> Iterator[tuple[str, bool | str]]:
    """Yield the result of each feature."""
    replies = json.dumps({feature: (ASK, reply) for feature, (reply, _) in REPLIES.items()})
    with place.serve() as url:
        found = json.loads(run([str(place.installed / "bin" / "python"), "-c", PLAY, url, replies], place.work, {}))
    yield "answer", "Call Ann" in found["first"] or found["first"]
    yield "second turn", "Water the plants" in found["second"] or found["second"]
    for feature, (waits, added, shown) in found["replied"].items():
        yield feature, (waits and added == REPLIES[feature][1]) or shown
    yield "client tools", "Call Ann" in found["first"]
    yield "system prompt", place.model.has_system_words("pirate") and place.model.has_system_words("poet")
    yield "responses", ["Call Ann" in found["responses"][0], "Water" in found["responses"][1]] == [True, True]
    right = [{"title": TITLE}, {"tags": [TAG]}, {"follow_ups": [NEXT]}]
    kept = place.sessions() == 2
    yield "background", (kept and [json.loads(one) for one in found["background"]] == right) or str(found["background"])


OPENAI = Client("openai", "PyPI openai", lambda folder: from_pypi("openai", folder), drive)
