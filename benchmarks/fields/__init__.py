"""Tables of the pages by field, longer than a page may run."""
