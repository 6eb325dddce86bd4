"""An agent that knows only `tools/list` does ten tasks over four servers, at the cost of one call more a task."""

from pathlib import Path

from fastmcp import FastMCP
from support.proxies import META, Talk, gateway_over, served, talking
from support.work_tools import work_server

TASKS: dict[str, str] = {
    "list the overdue tasks": "office__list_overdue_tasks",
    "show the timeline of a project": "office__get_project_timeline",
    "list the risks of a project": "office__list_project_risks",
    "search the web for news": "office__web_news",
    "show who changed a task, and when": "office__get_task_history",
    "get the weather forecast of a city": "weather__get_forecast",
    "list the storm warnings": "weather__list_warnings",
    "read the newest mail": "mail__read_newest",
    "count the unread mail": "mail__count_unread",
    "find a recipe with pumpkin": "kitchen__find_recipe",
}


def servers() -> list[FastMCP]:
    """Return four servers; every tool answers with its own name."""
    made = [work_server()]
    wanted = {name.partition("__")[::2] for name in TASKS.values()}
    texts = {
        "get_forecast": "Get the weather forecast of a city.",
        "list_warnings": "List the storm warnings that stand.",
        "read_newest": "Read the newest mail.",
        "count_unread": "Count the unread mail.",
        "find_recipe": "Find a recipe by what goes into it.",
    }
    for server in ("weather", "mail", "kitchen"):
        one = FastMCP(server)
        for name in sorted(tool for of, _, tool in [(of, "", tool) for of, tool in wanted] if of == server):
            one.tool(lambda name=name: name, name=name, description=texts[name])
        for number in range(20):
            one.tool(lambda: "", name=f"get_{server}_setting_{number}", description=f"Get setting {number}.")
        made.append(one)
    return made


async def done(talk: Talk, task: str) -> tuple[str, int]:
    """Do a task as an agent would that reads the list and calls what shares most words; return its calls."""
    calls = 0
    if "set_context" in await talk.names():
        await talk.call("set_context", query=task)
        calls += 1
    words = {*task.split()}
    tools = [tool for tool in await talk.tools() if tool.name not in META]
    said = {
        tool.name: {*f"{tool.name} {tool.description}".lower().replace("_", " ").strip(".").split()} for tool in tools
    }
    best = max(said, key=lambda name: (len(words & said[name]), -len(said[name])))
    schema = next(tool.input_schema for tool in tools if tool.name == best)
    given = dict.fromkeys(schema.get("required", []), "x")
    answer = await talk.call(best, **given)
    assert not answer.is_error, answer.text
    return best, calls + 1


async def test_ten_tasks_cost_one_call_more_each(tmp_path: Path) -> None:
    async with (
        gateway_over(*servers(), home=tmp_path) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "sdk", "legacy") as talk,
    ):
        for task, tool in TASKS.items():
            best, calls = await done(talk, task)
            assert (best, calls) == (tool, 2), task
