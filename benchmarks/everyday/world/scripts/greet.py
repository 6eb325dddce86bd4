"""Say hello from the till."""

import sys

name = sys.argv[1] if len(sys.argv) > 1 else "stranger"
print(f"Good day, {name}, the till is open.")
