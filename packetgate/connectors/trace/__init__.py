"""`packetgate trace`: past packets found again, shown in the terminal or saved as a page."""
