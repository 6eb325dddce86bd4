"""Turn a listed MCP tool into a `ToolSpec`."""

from typing import TYPE_CHECKING, Any

from packetgate.state.routing import Risk
from packetgate.tools.risk.parameter_kinds import Definition
from packetgate.tools.risk.registry import Confirmation
from packetgate.tools.risk.tool import judge_tool
from packetgate.tools.spec.default_arguments import ServerFolder, default_arguments, without_default_arguments
from packetgate.tools.spec.descriptions import brief_of, without_required_key
from packetgate.tools.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from mcp_types import Tool


def spec_of(
    server: str,
    tool: "Tool",
    definition: dict[str, Any] | None = None,
    *,
    trusted: bool,
    about: str = "",
    server_digest: str = "",
    ground: ServerFolder | None = None,
    confirmation: Confirmation | None = None,
    hosts: tuple[str, ...] | None = None,
) -> ToolSpec:
    """Return a tool that an MCP server lists as a `ToolSpec`.

    Args:
        definition: the tool as the server defines it.
        trusted: whether the server's annotations are trusted.
        about: the server's instructions.
        server_digest: digest of the server's entry.
        ground: the folder that the server's command names.
        confirmation: the tool's label in the registry of known servers.
        hosts: patterns of the hosts that the server's calls may name; None: the configuration names none.
    """
    dry_run = _without_dry_run(tool.input_schema) if trusted else None
    schema = tool.input_schema if dry_run is None else dry_run
    full = (tool.description or tool.title or tool.name).strip()
    judged = judge_tool(
        Definition(tool.name, full, tool.input_schema), tool.annotations, trusted=trusted, confirmation=confirmation
    )
    label = confirmation.label if confirmation else None
    default_args = default_arguments(
        tool.name, schema, ground, reads=judged.is_unconfirmed_read or judged.risk is Risk.READ
    )
    shown_schema = without_required_key(without_default_arguments(schema, default_args, ground))
    return ToolSpec(
        name=f"{server}.{tool.name}",
        server=server,
        upstream_name=tool.name,
        full=full,
        brief=brief_of(full),
        input_schema=shown_schema,
        definition=definition and {**definition, "inputSchema": shown_schema}
        if shown_schema != tool.input_schema
        else definition,
        risk=judged.risk,
        risk_reasons=judged.reasons,
        risk_source=judged.source,
        least_risk=judged.least_risk,
        changing_parameters=label.read_without if label else (),
        is_unconfirmed_read=judged.is_unconfirmed_read,
        reaches_outside=judged.reaches_outside,
        has_dry_run=dry_run is not None,
        tags=_tags(tool.meta),
        open_world=tool.annotations.open_world_hint if tool.annotations else None,
        server_description=about,
        server_digest=server_digest,
        default_args=default_args,
        title=tool.title or (tool.annotations.title if tool.annotations else None) or "",
        output_schema=tool.output_schema,
        idempotent=tool.annotations.idempotent_hint if tool.annotations else None,
        meta=tool.meta,
        outward=label.outward if label else None,
        returns_untrusted=label.untrusted if label else None,
        returns_private=label.private if label else None,
        undo=label.undo or "" if label else "",
        hosts=hosts,
    )


def _tags(meta: dict[str, Any] | None) -> tuple[str, ...]:
    objects = [meta, *((meta or {}).get(key) for key in ("fastmcp", "_fastmcp"))]
    lists = [value["tags"] for value in objects if isinstance(value, dict) and isinstance(value.get("tags"), list)]
    return tuple(sorted({tag for tags in lists for tag in tags if isinstance(tag, str)}))


def _without_dry_run(schema: dict[str, Any]) -> dict[str, Any] | None:
    match schema:
        case {"properties": {"dry_run": {"type": "boolean"}, **others}}:
            required = schema.get("required")
            others_required = [name for name in required if name != "dry_run"] if isinstance(required, list) else []
            return {**schema, "properties": others, "required": others_required}
    return None
