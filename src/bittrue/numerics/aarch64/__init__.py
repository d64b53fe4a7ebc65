"""What the runtimes compute on aarch64: the tables for x86-64 with the rows that differ there."""
