"""Boxes: decoding and suppression."""
