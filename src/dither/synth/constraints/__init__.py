"""Public rules that every synthetic row keeps: cells that they leave, and values."""
