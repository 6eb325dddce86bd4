"""Tool markup that models let slip into text."""
