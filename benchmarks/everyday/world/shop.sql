CREATE TABLE customers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL,
  city TEXT NOT NULL
);
CREATE TABLE products (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price REAL NOT NULL,
  stock INTEGER NOT NULL
);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers(id),
  product_id INTEGER NOT NULL REFERENCES products(id),
  quantity INTEGER NOT NULL,
  ordered_on TEXT NOT NULL,
  status TEXT NOT NULL
);
INSERT INTO customers VALUES
  (1, 'Anna', 'anna@example.org', 'Lisbon'),
  (2, 'Bruno', 'bruno@example.org', 'Porto'),
  (3, 'Chiara', 'chiara@example.org', 'Turin'),
  (4, 'Dario', 'dario@example.org', 'Turin'),
  (5, 'Elif', 'elif@example.org', 'Izmir'),
  (6, 'Finn', 'finn@example.org', 'Bergen'),
  (7, 'Greta', 'greta@example.org', 'Bergen'),
  (8, 'Hugo', 'hugo@example.org', 'Lyon'),
  (9, 'Ines', 'ines@example.org', 'Lisbon'),
  (10, 'Jonas', 'jonas@example.org', 'Graz');
INSERT INTO products VALUES
  (1, 'blue mug', 'mugs', 12.50, 48),
  (2, 'red mug', 'mugs', 12.50, 7),
  (3, 'teapot', 'pots', 34.00, 15),
  (4, 'small plate', 'plates', 9.25, 60),
  (5, 'large plate', 'plates', 16.75, 33),
  (6, 'salad bowl', 'bowls', 27.50, 0),
  (7, 'egg cup', 'cups', 5.50, 120),
  (8, 'milk jug', 'jugs', 18.00, 21),
  (9, 'sugar bowl', 'bowls', 14.25, 4),
  (10, 'vase', 'vases', 42.00, 9);
INSERT INTO orders VALUES
  (501, 1, 1, 2, '2026-01-12', 'shipped'),
  (502, 2, 3, 1, '2026-01-15', 'shipped'),
  (503, 1, 7, 6, '2026-01-20', 'shipped'),
  (504, 5, 10, 1, '2026-02-02', 'cancelled'),
  (505, 3, 4, 4, '2026-02-08', 'shipped'),
  (506, 8, 8, 1, '2026-02-12', 'paid'),
  (507, 1, 5, 4, '2026-02-19', 'paid'),
  (508, 6, 2, 3, '2026-03-01', 'open'),
  (509, 7, 9, 1, '2026-03-03', 'open'),
  (510, 9, 1, 5, '2026-03-07', 'open'),
  (511, 4, 6, 2, '2026-03-09', 'open'),
  (512, 1, 3, 1, '2026-03-13', 'cancelled');
