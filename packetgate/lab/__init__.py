"""Measure models, and calibrate their confidence."""

from packetgate.plugins import Command

EVALUATE = Command(
    "packetgate.lab.evaluate:evaluate",
    "Measure a model on eighty cases: its strengths, its confidence and suitable settings.",
)
CALIBRATE = Command(
    "packetgate.lab.calibrate:calibrate", "Fit the review's confidence to your answers, and show how reliable it is."
)
