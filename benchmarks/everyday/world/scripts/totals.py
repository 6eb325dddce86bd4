"""Print what the budget adds up to."""

import csv
import pathlib

BUDGET = pathlib.Path(__file__).resolve().parent.parent / "budget.csv"

with BUDGET.open(encoding="utf-8") as lines:
    total = sum(float(row["amount"]) for row in csv.DictReader(lines))

print(f"Total of the budget: {total:.2f}")
