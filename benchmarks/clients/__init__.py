"""Real chat clients, installed as their users install them and driven against Packetgate with a scripted model."""
