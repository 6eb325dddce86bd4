"""The scorer of `packetgate.deciders.values` is trained here: examples, and the fitting of its trees."""
