"""Slots that several layers have."""

REQUANTIZE_SLOTS = ("accumulate", "scale_form", "rescale", "requantize", "store")
REAL_SLOTS = ("sum_of_products", "plain_range")
HYBRID_SLOTS = ("quantize_symmetric", "quantize_asymmetric", "byte_products", "scale_back")
