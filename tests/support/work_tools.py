"""A server with 40 office tools: tasks, projects, calendar, web and product documentation."""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastmcp import FastMCP
from fastmcp.tools import Tool
from pydantic import Field

PRODUCT = "Larkspur"

_TASK = {"task_id": (str, "The task's id.")}
_PROJECT = {"project_id": (str, "The project's id.")}

READS: dict[str, tuple[str, dict[str, tuple[type, str]]]] = {
    "list_tasks": ("List tasks, newest first.", {}),
    "get_task": ("Show one task with its status, assignee and due date.", _TASK),
    "search_tasks": ("Search tasks by words in their title or notes.", {"query": (str, "Words to look for.")}),
    "list_task_comments": ("List the comments on a task.", _TASK),
    "list_overdue_tasks": ("List tasks that are past their due date.", {}),
    "get_task_history": ("Show who changed a task, and when.", _TASK),
    "list_projects": ("List projects.", {}),
    "get_project": ("Show one project with its description and owner.", _PROJECT),
    "get_project_status": ("Show how far a project has come.", _PROJECT),
    "list_project_members": ("List who works on a project.", _PROJECT),
    "list_project_milestones": ("List the milestones of a project and their dates.", _PROJECT),
    "list_project_risks": ("List the known risks of a project.", _PROJECT),
    "get_project_budget": ("Show a project's budget and what is spent of it.", _PROJECT),
    "list_project_goals": ("List the goals of a project.", _PROJECT),
    "get_project_timeline": ("Show the planned and the real timeline of a project.", _PROJECT),
    "list_project_blockers": ("List what holds a project up, by task.", _PROJECT),
    "get_project_velocity": ("Show how many tasks a project finishes in a week.", _PROJECT),
    "list_events": ("List the calendar's events of a day.", {"day": (str, "The day, as YYYY-MM-DD.")}),
    "get_event": ("Show one calendar event.", {"event_id": (str, "The event's id.")}),
    "find_free_slots": ("Find free times in the calendar.", {"minutes": (int, "How long the slot must be.")}),
    "web_search": ("Search the web and return titles and addresses.", {"query": (str, "What to search for.")}),
    "web_fetch": ("Fetch a web page and return its text.", {"url": (str, "The page's address.")}),
    "web_news": ("Search the web for news of the last days.", {"topic": (str, "What the news is about.")}),
    "search_docs": (f"Search the documentation of {PRODUCT}.", {"query": (str, "What to look for.")}),
    "get_doc_page": (f"Show a page of the documentation of {PRODUCT}.", {"page": (str, "The page's name.")}),
    "list_doc_pages": (f"List all pages of the documentation of {PRODUCT}.", {}),
}

WRITES: dict[str, tuple[str, dict[str, tuple[type, str]]]] = {
    "create_task": ("Create a task.", {"title": (str, "The new task's title.")}),
    "update_task": (
        "Update a task's title, status, assignee or due date.",
        {**_TASK, "status": (str, "The new status.")},
    ),
    "delete_task": ("Delete a task.", _TASK),
    "complete_task": ("Mark a task as done.", _TASK),
    "assign_task": ("Assign a task to a person.", {**_TASK, "person": (str, "Who is to do it.")}),
    "comment_on_task": ("Add a comment to a task.", {**_TASK, "text": (str, "The comment.")}),
    "create_project": ("Create a project.", {"name": (str, "The project's name.")}),
    "update_project": ("Update a project's description or owner.", {**_PROJECT, "description": (str, "The new text.")}),
    "archive_project": ("Archive a project.", _PROJECT),
    "add_project_risk": ("Add a risk to a project.", {**_PROJECT, "risk": (str, "What may go wrong.")}),
    "add_project_milestone": ("Add a milestone to a project.", {**_PROJECT, "title": (str, "The milestone.")}),
    "create_event": ("Create a calendar event.", {"title": (str, "The event's title.")}),
    "update_event": ("Update a calendar event.", {"event_id": (str, "The event's id."), "title": (str, "Its title.")}),
    "delete_event": ("Delete a calendar event.", {"event_id": (str, "The event's id.")}),
}

PROJECT_POOL = ("task", "project", "event", "slot")
"""Tools whose names hold one of these carry the tag `project`: what a conversation on a project begins with."""


def work_server() -> FastMCP:
    """Return the office's server. Every tool answers with its own name and what it was given."""
    server = FastMCP("office")
    for name, (description, parameters) in (READS | WRITES).items():
        tags = {"project"} if any(word in name for word in PROJECT_POOL) else set()
        server.add_tool(Tool.from_function(_answering(name, parameters), name=name, description=description, tags=tags))
    return server


def _answering(name: str, parameters: Mapping[str, tuple[type, str]]) -> Callable[..., str]:
    def answer(**given: Any) -> str:
        return f"{name} {given}"

    required = [
        Parameter(one, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, Field(description=text)])
        for one, (kind, text) in parameters.items()
    ]
    answer.__signature__ = Signature(required, return_annotation=str)  # type: ignore[attr-defined]
    answer.__annotations__ = {one.name: one.annotation for one in required} | {"return": str}
    return answer
