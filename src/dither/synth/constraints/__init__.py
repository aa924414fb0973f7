"""Public rules that every synthetic row keeps: what they say, which cells they leave, and values."""
