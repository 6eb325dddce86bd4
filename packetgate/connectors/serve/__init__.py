"""An OpenAI-compatible endpoint in front of the graph: any chat client uses Packetgate as its model."""

from packetgate.plugins import Command

COMMAND = Command(
    "packetgate.connectors.serve.command:serve",
    "Serve the graph as a model, over OpenAI's protocol, to any chat client until stopped.",
)
