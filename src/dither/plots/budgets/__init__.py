"""Pictures of a budget: over the blocks that it is kept for, and over time."""
