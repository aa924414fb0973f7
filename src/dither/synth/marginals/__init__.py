"""Tables of counts of least error, consistent with one another, and rows near them."""
