"""An opened policy: its engine, its ledger, and the questions that are asked of it."""
