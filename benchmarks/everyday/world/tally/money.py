"""Money in whole cents."""


def to_cents(text):
    """Turn a price such as '12.50' into cents."""
    euros, _, cents = text.partition(".")
    return int(euros) * 100 + int((cents + "00")[:2])


def vat(cents, percent=19):
    """The VAT on an amount, rounded to whole cents."""
    return round(cents * percent / 100)


def show(cents):
    """Write cents as euros."""
    return f"{cents // 100}.{cents % 100:02d}"
