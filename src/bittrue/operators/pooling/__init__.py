"""What windows and grids are made into one value: pooling and resizing."""
