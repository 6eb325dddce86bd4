"""The commands, as the command line reads them."""
