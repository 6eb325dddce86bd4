"""Run agents behind `packetgate proxy` with a scripted model; each is installed as its users install it."""
