import unittest

from tally import stock


class StockTest(unittest.TestCase):
    def test_is_low(self):
        self.assertTrue(stock.is_low(4))
        self.assertFalse(stock.is_low(5))

    def test_sell(self):
        shelf = {"teapot": 3}
        self.assertEqual(stock.sell(shelf, "teapot", 2), 1)


if __name__ == "__main__":
    unittest.main()
