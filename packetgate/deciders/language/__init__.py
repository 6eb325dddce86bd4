"""Deciders that ask a language model. They raise `DecisionError` if it cannot be asked or gives no usable answer."""
