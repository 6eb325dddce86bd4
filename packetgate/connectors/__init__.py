"""Where people meet Packetgate. Each connector is thin, and all run their turns through `turn`."""
