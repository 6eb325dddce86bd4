"""Learning the weights: `python -m tools.risk.training DATA`. Nothing of it runs with Packetgate."""
