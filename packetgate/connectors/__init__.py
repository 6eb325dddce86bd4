"""The interfaces of Packetgate. Each is thin, and all run their turns through `run_turn`."""
