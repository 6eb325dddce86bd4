import unittest

from tally import money


class MoneyTest(unittest.TestCase):
    def test_to_cents(self):
        self.assertEqual(money.to_cents("12.50"), 1250)
        self.assertEqual(money.to_cents("7"), 700)

    def test_show(self):
        self.assertEqual(money.show(1905), "19.05")


if __name__ == "__main__":
    unittest.main()
