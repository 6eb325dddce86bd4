"""Measure the calls of real language models, alone and with Packetgate."""
