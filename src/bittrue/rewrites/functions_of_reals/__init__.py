"""What frontends make of quantized functions that they have on real numbers alone, one module per rewrite."""
