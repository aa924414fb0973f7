"""Results as frames, as LaTeX and as HTML: one way for everything that the package gives.

What is written may hold names that somebody else chose (columns, levels, hypotheses). Every text is
escaped for where it goes, so that none of it is read as a command or as markup.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dither._format import number_text
from dither._notebook import html_table
from dither.errors import ArgumentError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PrintedTable", "Tabulated", "cell_text", "framed_cells", "latex_text"]

PrintedTable = tuple[list[str], list[list[str]], int]
"""Heads, rows of texts, and how many columns are flush left."""

_COMMANDS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "-": r"{-}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "−": r"$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "²": r"\textsuperscript{2}",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "√": r"$\surd$",
    "∞": r"$\infty$",
}
"""What LaTeX reads otherwise, and what its plain fonts lack; a hyphen joins none into a dash."""

_MINUS = re.compile(r"(?<![^ \[(])-(?=[0-9])")
"""A hyphen before a number stands for the minus sign."""

_LABEL = re.compile(r"[A-Za-z0-9:._-]{1,80}")


def latex_text(text: str) -> str:
    r"""A text for LaTeX: nothing of it is a command, a comment or a break.

    Examples
    --------
    >>> latex_text("50 % of a_b & c")
    '50 \\% of a\\_b \\& c'
    >>> latex_text("\\input{x}\n"), latex_text("-4 ± 3")
    ('\\textbackslash{}input\\{x\\} ', '$-$4 $\\pm$ 3')
    """
    found = []
    for letter in _MINUS.sub("−", text):
        if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            found.append(" ")
        else:
            found.append(_COMMANDS.get(letter, letter))
    return "".join(found)


def framed_cells(frame: pl.DataFrame) -> PrintedTable:
    """The cells of a frame as texts: texts to the left, numbers with four digits to the right."""
    import polars as pl

    texts = [kind == pl.String for kind in frame.dtypes]
    left = texts.index(False) if False in texts else len(texts)
    rows = [[cell_text(value) for value in row] for row in frame.iter_rows()]
    return list(frame.columns), rows, left


def cell_text(value: Any) -> str:
    """A value as it is printed in a table.

    Examples
    --------
    >>> [cell_text(v) for v in (None, True, 1234, 2 / 3, -math.inf, math.nan, "a")]
    ['', 'yes', '1,234', '0.6667', '−∞', '', 'a']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return "" if math.isnan(value) else number_text(value)


class Tabulated:
    """What can be handed on as a table: `to_frame`, `to_latex` and `to_html`."""

    __slots__ = ()

    def _framed(self, confidence: float) -> pl.DataFrame:
        """The numbers, a row for each."""
        found: pl.DataFrame = self.frame  # type: ignore[attr-defined]
        return found

    def _printed(self, confidence: float) -> PrintedTable:
        """What is printed of them."""
        return framed_cells(self._framed(confidence))

    def _caption(self) -> str:
        """What is said above the table."""
        return ""

    def to_frame(self, confidence: float = 0.95) -> pl.DataFrame:
        """The numbers as a Polars frame, a row for each: costs nothing.

        Parameters
        ----------
        confidence : float
            In (0, 1), of intervals where there are any.
        """
        return self._framed(confidence)

    def to_latex(
        self, confidence: float = 0.95, *, caption: str | None = None, label: str | None = None
    ) -> str:
        r"""The numbers as a LaTeX table in the style of booktabs: costs nothing.

        Parameters
        ----------
        confidence : float
            In (0, 1), of intervals where there are any.
        caption : str, optional
            By default what it is and what it cost. It is escaped, as all texts are.
        label : str, optional
            For ``\ref``: letters, digits, and ``: . _ -``.

        Raises
        ------
        ArgumentError
            The label has another character.
        """
        if label is not None and not (isinstance(label, str) and _LABEL.fullmatch(label)):
            raise ArgumentError("label must be letters, digits and : . _ -, at most 80 of them")
        heads, rows, left = self._printed(confidence)
        told = self._caption() if caption is None else _text("caption", caption)

        def line(cells: Sequence[str]) -> str:
            return "  " + " & ".join(map(latex_text, cells)) + r" \\"

        body = [r"\begin{table}", r"  \centering"]
        body += [rf"  \caption{{{latex_text(told)}}}"] * bool(told)
        body += [rf"  \label{{{label}}}"] * (label is not None)
        body += [rf"  \begin{{tabular}}{{{'l' * left}{'r' * (len(heads) - left)}}}", r"  \toprule"]
        body += [line(heads), r"  \midrule", *map(line, rows), r"  \bottomrule"]
        return "\n".join([*body, r"  \end{tabular}", r"\end{table}", ""])

    def to_html(self, confidence: float = 0.95, *, caption: str | None = None) -> str:
        """The numbers as an HTML table without script or style of others: costs nothing.

        Parameters
        ----------
        confidence : float
            In (0, 1), of intervals where there are any.
        caption : str, optional
            By default what it is and what it cost. It is escaped, as all texts are.
        """
        heads, rows, left = self._printed(confidence)
        told = self._caption() if caption is None else _text("caption", caption)
        found = html_table(heads, rows, left=left)
        if not told:
            return found
        return found.replace("<table>", f"<table><caption>{html.escape(told)}</caption>", 1)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise ArgumentError(f"{name} must be a text")
    return given
