"""Tests of hypotheses: means, ranks, tables, distributions, and tests of other tests."""
