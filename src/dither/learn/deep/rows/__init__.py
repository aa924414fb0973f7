"""One example at a time: how a model's rows are run, and what each gives to a sum."""
