"""Pass resources, prompts and completions of the servers through, each under its server's name."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import mcp_types
from fastmcp.exceptions import NotFoundError
from fastmcp.prompts.base import Prompt, PromptResult
from fastmcp.resources.base import Resource, ResourceContent, ResourceResult
from fastmcp.resources.template import ResourceTemplate
from fastmcp.server.dependencies import get_context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.providers.aggregate import AggregateProvider
from fastmcp.server.providers.proxy import ProxyProvider, ProxyResource
from fastmcp.tools.base import Tool
from fastmcp.utilities.components import FastMCPComponent
from fastmcp.utilities.versions import VersionSpec

from packetgate.connectors.proxy.gateway import Gateway, refusal
from packetgate.connectors.proxy.results import namespaced, own_address
from packetgate.state.redaction import redacted
from packetgate.tools.spec.descriptions import listed_name, may_be_tool_of


class UpstreamProvider(ProxyProvider):
    """The resources and prompts of one server, over the same session as its tool calls."""

    def __init__(self, gateway: Gateway, server: str) -> None:
        super().__init__(self._client, cache_ttl=0)
        self._gateway, self._server = gateway, server

    async def get_tasks(self) -> Sequence[FastMCPComponent]:
        """Return no background tasks; the default would ask the server for its lists at start."""
        return []

    def _client(self) -> Any:
        client = self._gateway.hub.clients().get(self._server)
        if client is None:
            raise NotFoundError(f"server {self._server!r} is not connected")
        return client

    def _offers(self, what: str) -> bool:
        client = self._gateway.hub.clients().get(self._server)
        capabilities = client.session.server_capabilities if client and self._gateway.may_use(self._server) else None
        return getattr(capabilities, what, None) is not None

    async def _list_tools(self) -> Sequence[Tool]:
        return []

    async def _list_resources(self) -> Sequence[Resource]:
        own = await super()._list_resources() if self._offers("resources") else []
        return [resource.model_copy(update={"uri": namespaced(self._server, str(resource.uri))}) for resource in own]

    async def _get_resource(self, uri: str, version: VersionSpec | None = None) -> Resource | None:
        own = own_address(self._server, uri)
        if own is None or not self._offers("resources"):
            return None
        resource = await super()._get_resource(uri, version)
        if resource is None and await super()._get_resource_template(uri, version) is None:
            # an answer may link to a resource that is not listed
            unlisted = ProxyResource.from_mcp_resource(self._client, mcp_types.Resource(uri=own, name=own))
            return unlisted.model_copy(update={"uri": uri})
        return resource

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        own = await super()._list_resource_templates() if self._offers("resources") else []
        return [
            template.model_copy(update={"uri_template": namespaced(self._server, template.uri_template)})
            for template in own
        ]

    async def _get_resource_template(self, uri: str, version: VersionSpec | None = None) -> ResourceTemplate | None:
        is_own = own_address(self._server, uri) is not None
        return await super()._get_resource_template(uri, version) if is_own else None

    async def _list_prompts(self) -> Sequence[Prompt]:
        own = await super()._list_prompts() if self._offers("prompts") else []
        return [prompt.model_copy(update={"name": listed_name(self._server, prompt.name)}) for prompt in own]

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> Prompt | None:
        return await super()._get_prompt(name, version) if may_be_tool_of(self._server, name) else None


def upstream_providers(gateway: Gateway) -> AggregateProvider:
    """Return the resources and prompts of all configured servers."""
    providers = AggregateProvider()
    for server in gateway.hub.names:
        providers.add_provider(UpstreamProvider(gateway, server))
    return providers


def completion_handler(gateway: Gateway) -> Callable[..., Awaitable[mcp_types.Completion | None]]:
    """Return the handler that forwards a completion to the server of its prompt or resource."""

    async def complete(ref: Any, argument: Any, context: Any) -> mcp_types.Completion | None:
        for server, client in gateway.hub.clients().items():
            capabilities = client.session.server_capabilities
            if not gateway.may_use(server) or capabilities is None or capabilities.completions is None:
                continue
            own = await _own_reference(ref, server, client)
            if own is not None:
                arguments = context.arguments if context else None
                completed: mcp_types.Completion = await client.complete(
                    own, {"name": argument.name, "value": argument.value}, arguments
                )
                return completed
        return None

    return complete


async def _own_reference(ref: Any, server: str, client: Any) -> Any:
    if isinstance(ref, mcp_types.PromptReference):
        prompts = await client.list_prompts() if may_be_tool_of(server, ref.name) else []
        names = [prompt.name for prompt in prompts if listed_name(server, prompt.name) == ref.name]
        return mcp_types.PromptReference(name=names[0]) if names else None
    uri = own_address(server, str(ref.uri))
    return mcp_types.ResourceTemplateReference(uri=uri) if uri else None


class UpstreamMiddleware(Middleware):
    """Waits for servers, and redacts prompts and resources."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Wait a moment for starting servers, and announce later changes; also used for resources."""
        self._gateway.hub.tend()
        await self._gateway.hub.started(self._gateway.patience_s)
        await self._gateway.announcer.remember_shown(get_context())
        return await call_next(context)

    on_list_resources = on_list_resource_templates = on_list_prompts

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Call a tool. Name the server if a tool is unknown because its server is not connected."""
        try:
            return await call_next(context)
        except NotFoundError as error:
            settings = self._gateway.request_settings()
            if reason := self._gateway.pipeline.unavailable(context.message.name, settings):
                raise refusal(reason) from error
            raise

    async def on_read_resource(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, ResourceResult]
    ) -> ResourceResult:
        """Redact a resource, and remember its text as server output."""
        uri = str(context.message.uri)
        await self._settle(lambda server: own_address(server, uri) is not None)
        result = await call_next(context)
        if not isinstance(result, ResourceResult):
            return result
        contents = [
            ResourceContent(redacted(content.content), mime_type=content.mime_type, meta=content.meta)
            if isinstance(content.content, str)
            else content
            for content in result.contents
        ]
        self._remember(uri, [content.content for content in contents if isinstance(content.content, str)])
        return ResourceResult(contents, meta=result.meta)

    async def on_get_prompt(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, PromptResult]
    ) -> PromptResult:
        """Redact a prompt, and remember its text as server output."""
        name = context.message.name
        await self._settle(lambda server: may_be_tool_of(server, name))
        result = await call_next(context)
        if isinstance(result, PromptResult):
            texts = [
                message.content for message in result.messages if isinstance(message.content, mcp_types.TextContent)
            ]
            for content in texts:
                content.text = redacted(content.text)
            self._remember(name, [content.text for content in texts])
        return result

    async def _settle(self, may_be_asked: Callable[[str], bool]) -> None:
        self._gateway.hub.tend()
        await self._gateway.hub.settled(*filter(may_be_asked, self._gateway.hub.names))

    def _remember(self, source: str, texts: Sequence[str]) -> None:
        self._gateway.session_of(get_context()).remember_text(source, "\n".join(texts))
