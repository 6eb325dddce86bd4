"""Learning the weights: `python -m packetgate.tools.risk.training DATA`. Nothing of it runs with Packetgate."""
