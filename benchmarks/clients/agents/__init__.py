"""Agents behind `packetgate proxy`, installed as their users install them, with a scripted model."""
