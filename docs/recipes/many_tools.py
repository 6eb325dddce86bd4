"""Many tools, in place of an agent of `langgraph-bigtool`: without a registry, embeddings and a store."""

from langchain_core.tools import BaseTool, StructuredTool

from packetgate import create_router, reads

RATES = {"dollars": 1.08, "pounds": 0.85, "yen": 162.0, "francs": 0.94, "crowns": 11.5, "pesos": 19.8, "rupees": 91.0}


def converter(source: str, target: str) -> BaseTool:
    """Return the tool that converts one currency into another."""

    def convert(amount: float) -> float:
        return round(amount / RATES[source] * RATES[target], 2)

    description = f"Convert {source} to {target}."
    return reads(StructuredTool.from_function(convert, name=f"{source}_to_{target}", description=description))


tools = [converter(source, target) for source in RATES for target in RATES if source != target]
with create_router("openai:gpt-5-mini", tools) as router:
    turn = router.invoke("Convert 20 pounds to yen")
    print(f"{len(tools)} tools: {turn.answer} {[call.tool_name for call in turn.calls]}")
