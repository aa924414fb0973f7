"""Rehearsals: sessions over dummy rows, and answers that say that they are of them."""
