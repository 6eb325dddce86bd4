"""The command line: `packetgate`."""
