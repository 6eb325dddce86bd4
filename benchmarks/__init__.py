"""What Packetgate costs, each cost as a ratio to what it stands on, measured in the same run."""
