"""Rates over person-time, standardised rates, and ratios over strata."""
