"""``dither local best`` chooses as the package does, says why, and refuses what makes no sense."""

from __future__ import annotations

import pytest

from dither.local import best


def test_the_choice_is_the_package_s(run) -> None:
    """Its reason in whole, a row for each candidate, and the chosen one marked."""
    found = run("local", "best", "100", "--epsilon", "1/2", "--people", "1000", "--bytes", "5")
    assert found.exit_code == 0, found.output
    choice = best(100, "1/2", 1000, bytes=5)
    assert choice.reason in " ".join(found.output.split())
    name = type(choice.channel).__name__
    marked = [line for line in found.output.splitlines() if line.startswith("* ")]
    assert [line.split()[1] for line in marked] == [name]
    assert found.output.count("over 5 bytes") == sum(
        c.excluded.startswith("over") for c in choice.candidates
    )
    assert max(map(len, found.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("1", "--epsilon", "1", "--people", "10"), "at least two values"),
        (("10", "--epsilon", "0", "--people", "10"), "epsilon must be above 0"),
        (("10", "--epsilon", "1", "--people", "0"), "--people"),
        (("1000", "--epsilon", "1", "--people", "10", "--bytes", "1"), "at least 2 bytes"),
    ],
)
def test_refusals(run, words, message) -> None:
    """Each mistake is named."""
    found = run("local", "best", *words)
    assert found.exit_code != 0
    assert message in " ".join(found.output.split())
