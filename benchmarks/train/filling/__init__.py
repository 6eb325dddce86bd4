"""The scorer of `packetgate.reflex.values` is trained here: examples, and the fitting of its trees."""
