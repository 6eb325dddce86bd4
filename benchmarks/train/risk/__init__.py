"""Learning the weights: `python -m benchmarks.train.risk DATA`. Nothing of it runs with Packetgate."""
