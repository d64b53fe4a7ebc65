"""Other runtimes and traces, opened and recorded; `peers` lists those that can be timed."""
