"""What ONNX Runtime's optimiser does to a graph, one module per rewrite; the others hold what several of them need."""
