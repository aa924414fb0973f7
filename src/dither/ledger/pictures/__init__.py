"""What pictures of a budget show, as plain columns: over blocks, and over time."""

__all__: list[str] = []
