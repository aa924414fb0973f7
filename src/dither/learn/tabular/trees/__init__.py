"""Trees and forests, whose splits are chosen with noise."""
