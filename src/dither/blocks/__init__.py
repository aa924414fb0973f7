"""Blocks: stretches of one column that budgets are kept for, such as the months of a day.

A *calendar* is a public function from a value of that column to its block, fixed before any data
are seen. A *set of blocks* is what a question reads and is charged for. Both are exact, and small
whatever they hold: blocks in a row are numbered, so that a set is a few ranges.
"""

from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet as BlockSet

__all__ = ["Calendar"]
