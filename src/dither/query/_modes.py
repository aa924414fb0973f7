"""How good a choice among public values is: what is said of modes, before and after they are asked.

A mode has no interval: the value that most rows have may be any. What is known, from the mechanism
alone, is how many rows the chosen one may fall short of the most frequent.
"""

from __future__ import annotations

from dither._format import level, number_text
from dither.plan.lowering.recipes import ModeRecipe, Recipe, sources
from dither.query._noise import NoisePlan

__all__ = ["has_mode", "mode_notes", "shortfalls"]


def shortfalls(noise_plan: NoisePlan, confidence: float) -> dict[str, float]:
    """By output: how many rows fewer than the most frequent value the chosen one has at most.

    So few with this confidence in each group, of rows as they count in the answer. Of what is
    calculated from a mode, where that is not an output itself, what is said is of the mode.
    """
    found: dict[str, float] = {}
    outputs = list(zip(noise_plan.plan.query.outputs, noise_plan.plan.recipes, strict=True))
    named = {recipe for _, recipe in outputs if isinstance(recipe, ModeRecipe)}
    for output, recipe in outputs:
        for mode in _modes(recipe):
            if mode == recipe or mode not in named:
                choice = noise_plan.choices[mode.votes]
                short = choice.shortfall(len(mode.values), confidence) / mode.parts
                found[output.name] = max(short, found.get(output.name, 0.0))
    return found


def mode_notes(noise_plan: NoisePlan, confidence: float) -> list[str]:
    """What a reader should know of the modes of a release."""
    return [
        f"the mode in {name} is chosen by chance, the likelier the more rows have it: with "
        f"{level(confidence)} confidence in each group it has at most {number_text(short)} rows "
        "fewer than the most frequent value; in a group without rows it is any"
        for name, short in shortfalls(noise_plan, confidence).items()
    ]


def has_mode(recipe: Recipe) -> bool:
    """Whether a released value rests on a mode."""
    return bool(_modes(recipe))


def _modes(recipe: Recipe) -> list[ModeRecipe]:
    return [one for one in sources(recipe) if isinstance(one, ModeRecipe)]
