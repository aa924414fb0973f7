"""The noise of steps: independent or correlated, and steps that know how much there is."""
