"""`packetgate trace`: find past packets, and show them or save them as a page."""
