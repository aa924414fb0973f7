"""How guarantees combine: conversions between currencies, and filters for adaptive spending."""

from dither.accounting.filters import BudgetFilter, Remaining
from dither.accounting.zcdp import delta_of_rho, epsilon_of_rho, rho_of_epsilon

__all__ = ["BudgetFilter", "Remaining", "delta_of_rho", "epsilon_of_rho", "rho_of_epsilon"]
