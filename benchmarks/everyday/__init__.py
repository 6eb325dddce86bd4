"""Plain everyday requests, played through the front door on real servers, with outcomes that are checked."""
