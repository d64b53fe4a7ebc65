"""Quantized values from real numbers, back, and between types."""
