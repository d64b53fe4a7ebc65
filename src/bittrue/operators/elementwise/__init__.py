"""Operators of one element of each input."""
