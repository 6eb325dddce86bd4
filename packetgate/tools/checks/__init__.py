"""Whether a wanted call can be made: repaired where that is safe, validated, and traced to its origins."""
