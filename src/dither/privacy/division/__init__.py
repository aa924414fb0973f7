"""One promise shared among mechanisms, and totals by every theorem side by side."""
