"""What is left on the shelves."""

LOW_STOCK = 5


def is_low(pieces, limit=LOW_STOCK):
    """Say whether a product must be made again soon."""
    return pieces < limit


def sell(shelf, product, pieces=1):
    """Take pieces of a product off the shelf."""
    # TODO: refuse to sell more than there is
    shelf[product] = shelf.get(product, 0) - pieces
    return shelf[product]
