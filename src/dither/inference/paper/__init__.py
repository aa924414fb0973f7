"""What a paper prints: a table of who was studied, tests that were made together, and how shown."""
