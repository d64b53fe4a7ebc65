"""Operators that give elements of their inputs as they are."""
