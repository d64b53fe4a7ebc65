"""What rows of tables ask of a node before it is theirs."""
