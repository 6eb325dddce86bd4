"""What was asked, chosen and approved, and how it ended, turn by turn."""
