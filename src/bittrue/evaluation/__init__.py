"""Whole data sets: samples of a source, through a recipe, run under several arithmetics; their answers compared.

`evaluate` is the way in.
"""
