"""Linear and logistic regression by formula, with intervals of the coefficients."""
