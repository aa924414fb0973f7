"""What the docstrings of tests share, said once: a line that is ``{name}`` stands for a part.

`help`, doctests and the site read docstrings when the package is imported, and see the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import indent
from typing import Any, TypeVar

__all__ = ["PARTS", "documented"]

Function = TypeVar("Function", bound=Callable[..., Any])

PARTS = {
    "costs": """\
epsilon, delta : number
    What the release may cost. Where n is measured no delta is spent.""",
    "pure_cost": """\
epsilon : number
    What the release may cost; no delta is spent.""",
    "neighbours": """\
neighbours : {"replace", "add-remove"}
    Whether the number of rows is public, or measured with noise.""",
    "neighbours_of_groups": """\
neighbours : {"replace", "add-remove"}
    Whether the number of rows in all is public, or measured with noise. How many are in which
    group is private either way: a row that is replaced may move to another group.""",
    "shape": """\
shape : {"any", "normal"}
    "any": nothing is assumed of the values, and their mean is that of the clamped ones: beyond a
    bound a value counts as the bound. "normal": values are normal before they are clamped, and
    what clamping takes from their mean is given back; at a bound beyond which the released
    numbers show too few values for that, nothing is, and a note says so.""",
    "simulation": """\
draws : int
    Simulated releases, 100 to 10**6.
seed : int, numpy.random.Generator or None
    Of the simulation.""",
    "ties": """\
ties : bool
    Whether values may tie, as answers on a scale do: then a part of epsilon tells by how much
    that narrows the null, at most a sixth, and nothing where rows are known to be few.""",
    "raises": """\
Raises
------
ArgumentError
    An argument is out of range. No value of the data raises anything.""",
    "guarantee_of_groups": """\
*Guarantee.* (epsilon, delta)-DP for the neighbours, a row with its group being the unit;
epsilon-DP where delta is 0. A tenth of epsilon goes to the numbers of rows of the groups.""",
}


def documented(function: Function) -> Function:
    """Put the parts in that a docstring names.

    Examples
    --------
    >>> def answer():
    ...     '''What is it?
    ...
    ...     {raises}
    ...     '''
    >>> print(documented(answer).__doc__)
    What is it?
    <BLANKLINE>
        Raises
        ------
        ArgumentError
            An argument is out of range. No value of the data raises anything.
    <BLANKLINE>
    """

    def part(found: re.Match[str]) -> str:
        return indent(PARTS[found[2]], found[1])

    if function.__doc__ is not None:
        function.__doc__ = re.sub(r"^( *)\{([a-z_]+)\}$", part, function.__doc__, flags=re.M)
    return function
