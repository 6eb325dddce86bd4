"""What real language models choose, alone and behind Packetgate."""
