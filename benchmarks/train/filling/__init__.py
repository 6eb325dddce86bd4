"""Train the scorer of `packetgate.reflex.values`: its examples, and the fitting of its trees."""
