"""Sums, means, extremes, softmax and normalizations along axes."""
