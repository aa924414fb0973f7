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
    assert run(str(tmp_path / "missing.toml")).exit_code == 1


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
    assert run(text).exit_code == 1


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
