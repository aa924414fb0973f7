"""What other packages ask of a table: counts of cells, levels of places, sums by declared keys."""
