"""Generators of .tflite cases: one file per operator, or per group of operators that are alike."""
