"""From statistics back to the rows: subset sums, tables, differences of counts."""
