"""Who was in the data that a model, a mean or a synthetic table was made of."""
