"""The owner's document: what is public of the data, whose rows they are, and what may be spent."""
