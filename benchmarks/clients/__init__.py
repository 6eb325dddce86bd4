"""Run real chat clients against Packetgate with a scripted model; each is installed as its users install it."""
