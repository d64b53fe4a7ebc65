"""Attention of transformers, and what goes with it."""
