"""What every operator is made of: calls, steps, operands and their roles, windows."""
