"""Commands of the data's owner: drafting and checking policies, bounds, bias, the ledger."""
