"""Run agents, installed as users install them, behind `packetgate proxy` with a scripted model."""
