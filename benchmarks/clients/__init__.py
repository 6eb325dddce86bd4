"""Run real chat clients, installed as users install them, against Packetgate with a scripted model."""
