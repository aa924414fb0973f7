"""All ranges of one ordered column, from a tree of counts."""
