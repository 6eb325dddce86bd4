"""The interfaces of Packetgate. Each interface contains little code, and runs its turns with `run_turn`."""
