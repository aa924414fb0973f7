"""From a query to the integers that answer it: measurements, sensitivities, and the way back."""
