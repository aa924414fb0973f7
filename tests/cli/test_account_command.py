"""The command that composes mechanisms: expressions, documents, pictures, refusals."""

import pytest
from click.testing import CliRunner

from dither.accounting import loss_from_expression, loss_from_toml
from dither.cli import main
from dither.errors import ArgumentError


def run(*arguments, text=None):
    """The command's result."""
    return CliRunner().invoke(main, ["account", *arguments], input=text)


def test_every_method_is_printed():
    """One line a theorem, with a value and a time."""
    result = run("10000 * pure(0.01)", "--delta", "1e-6")
    assert result.exit_code == 0
    assert "4.885515601" in result.output
    assert "basic" in result.output
    assert " ms" in result.output


def test_delta_at_an_epsilon():
    """The other way round, and from standard input."""
    result = run("-", "--epsilon", "1", text="gaussian(4.2246788893268353)\n")
    assert result.exit_code == 0
    assert "1.0000000000" in result.output or "9.99999999" in result.output


def test_documents_and_pictures(tmp_path):
    """A TOML document composes, and the picture is drawn."""
    path = tmp_path / "mechanisms.toml"
    path.write_text(
        '[[mechanism]]\nkind = "gaussian"\nnoise_multiplier = 2.0\nrepeat = 4\n'
        '[[mechanism]]\nkind = "pure"\nepsilon = 0.1\n'
    )
    result = run(str(path), "--plot", str(tmp_path / "loss.svg"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "loss.svg").stat().st_size > 1000
    assert run(str(tmp_path / "missing.toml")).exit_code == 4


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gausian(1.0)", "did you mean 'gaussian'"),
        ("__import__('os')", "unknown mechanism"),
        ("gaussian(1.0).epsilon(1e-5)", "unknown method"),
        ("gaussian(1.0).__class__", "nothing else"),
        ("[x for x in (1, 2)]", "nothing else"),
        ("gaussian(1.0) - pure(1)", "added with"),
        ("gaussian(1.0) * pure(1)", "repeated with"),
        ("gaussian()", "takes: noise_multiplier"),
        ("gaussian(*[1])", "nothing else"),
        ("gaussian(**{'noise_multiplier': 1})", "unpacked"),
        ("1 + 1", "added with"),
        ("3", "must be a loss"),
        ("pure(", "cannot be read"),
        ("(pure)(1)(2)", "only the makers"),
    ],
)
def test_expressions_are_not_code(text, name):
    """Only the allow-list is understood."""
    with pytest.raises(ArgumentError, match=name):
        loss_from_expression(text)
    assert run(text).exit_code == 4


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x = ", "valid TOML"),
        ("", "must list"),
        ("mechanism = [1]", "must list"),
        ("mechanisms = 1", "did you mean 'mechanism'"),
        ('[[mechanism]]\nkind = "gauss"', "unknown kind"),
        ('[[mechanism]]\nkind = "pure"\nepsilon = 1\nscale = 2', "takes: epsilon"),
    ],
)
def test_documents_are_checked(text, name):
    """Each mistake is named."""
    with pytest.raises(ArgumentError, match=name):
        loss_from_toml(text)


def test_expressions_mean_what_they_say():
    """Samples, groups, maps and quotients."""
    text = (
        "2 * gaussian(noise_multiplier=3/2).poisson(0.1).group(2)"
        " + renyi({2: 0.1}) + pair([0.5, 0.5], [0.25, 0.75])"
    )
    assert loss_from_expression(text).describe().startswith("2 * gaussian(1.5).poisson(0.1)")
    fixed = loss_from_toml(
        'neighbours = "replace"\n[[mechanism]]\nkind = "pure"\nepsilon = 1.0\n'
        "without_replacement = { sample = 1, population = 10 }\n"
    )
    assert fixed.neighbours.value == "replace"


def test_an_expression_needs_no_command(tmp_path):
    """Options may come first, and the picture shows every method beside the loss."""
    path = tmp_path / "all.png"
    short = run("--delta", "1e-5", "4 * gaussian(3)", "--plot", str(path))
    assert short.exit_code == 0, short.output
    assert path.stat().st_size > 10_000
    assert run("compose", "4 * gaussian(3)", "--delta", "1e-5").output.splitlines()[0] == (
        "epsilon of 4 * gaussian(3) at delta 1e-05"
    )


def test_a_promise_is_divided(tmp_path):
    """Every theorem's division on the screen and in a picture; delta 0 leaves the sum."""
    path = tmp_path / "division.svg"
    mix = "laplace(sensitivity=2) + 3 * gaussian"
    result = run("divide", mix, "--epsilon", "1", "--delta", "1e-6", "--plot", str(path))
    assert result.exit_code == 0, result.output
    assert all(name in result.output for name in ("numeric", "zCDP", "optimal", "basic"))
    assert path.stat().st_size > 5_000
    pure = run("divide", "-", "--epsilon", "1", text="2 * laplace\n")
    assert pure.exit_code == 0
    assert "scale 2" in pure.output
    wrong = run("divide", "lapace", "--epsilon", "1")
    assert wrong.exit_code == 4
    assert "did you mean 'laplace'" in wrong.output


def test_a_lifetime_budget_is_shared(tmp_path):
    """Example 3.7 of the books: ten thousand databases, epsilon 1, delta e^-32."""
    path = tmp_path / "shares.png"
    delta = "1.2664165549094176e-14"
    result = run("shares", "10000", "--epsilon", "1", "--delta", delta, "--plot", str(path))
    assert result.exit_code == 0, result.output
    for share in ("0.00139760341", "0.00123104493958718", "0.000624999999999999"):
        assert share in result.output
    assert path.stat().st_size > 5_000
    assert run("shares", "10000", "--epsilon", "0", "--delta", delta).exit_code == 4
    each = run("shares", "100", "--epsilon", "1", "--delta", "1e-6", "--each-delta", "5e-9")
    assert "each with delta 5e-09" in each.output


def test_no_finite_epsilon_says_so():
    """A delta below the chance of failure: the least one is named, and the exit code tells."""
    result = run("approximate(1, 1e-5)", "--delta", "1e-7")
    assert result.exit_code == 4
    assert "it must be at least 1e-05" in result.output


def test_ties_go_to_the_numeric_row():
    """Where a theorem differs by its rounding alone, it is not called the least."""
    result = run("pure(1) * 3 + 2 * laplace(5)", "--delta", "1e-7")
    assert result.exit_code == 0
    assert "least:" not in result.output


def test_documents_hold_orders():
    """A Rényi profile in TOML, whose keys are text."""
    text = '[[mechanism]]\nkind = "renyi"\norders = { 2 = 0.1, "8.5" = 0.4 }\n'
    assert loss_from_toml(text).describe() == "renyi({2: 0.1, 8.5: 0.4})"
    with pytest.raises(ArgumentError, match="orders must map"):
        loss_from_toml('[[mechanism]]\nkind = "renyi"\norders = { two = 0.1 }\n')
