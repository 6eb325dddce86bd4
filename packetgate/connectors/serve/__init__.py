"""An OpenAI-compatible endpoint in front of the graph: any chat client uses Packetgate as its model."""
