"""Answer `completion/complete`: the values that a server proposes for an argument of its prompt or resource."""

from fastmcp.server.completions import CompletionReference
from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from packetgate.connectors.proxy.gateway import Gateway
from packetgate.state.redaction import redacted
from packetgate.toolsets.servers.definitions import visible_text


async def complete(
    gateway: Gateway, ref: CompletionReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion | None:
    """Return the values that a server proposes, or None. FastMCP has checked that the client sees what `ref` names."""
    is_prompt = isinstance(ref, PromptReference)
    offered = await gateway.hub.offered_names("prompts" if is_prompt else "resources")
    for server in gateway.hub.servers_with("completions"):
        own: CompletionReference
        if isinstance(ref, PromptReference):
            name = ref.name.removeprefix(f"{server}_")
            own = PromptReference(name=name)
        else:
            name = ref.uri.replace(f"://{server}/", "://", 1)
            own = ResourceTemplateReference(uri=name)
        if own.model_dump() != ref.model_dump() and name in offered.get(server, ()):
            more = context.arguments if context else None
            answer = await gateway.hub.clients()[server].complete(own, argument.model_dump(), more)
            return answer.model_copy(update={"values": [visible_text(redacted(value)) for value in answer.values]})
    return None
