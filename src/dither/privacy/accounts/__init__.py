"""Filters and odometers: accounts for spending that depends on earlier answers."""
