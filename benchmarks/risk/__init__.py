"""How well the risk of tools is judged, on servers that the model has not seen: `python -m benchmarks.risk`."""
