"""What is public of expressions, relations and units, derived from declared facts alone."""
