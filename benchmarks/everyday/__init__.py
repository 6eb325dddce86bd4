"""Play plain everyday requests on real servers through Packetgate's turns, and check their outcomes."""
