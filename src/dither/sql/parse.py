"""Text to sqlglot's tree, with limits on what is parsed at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError

from dither.errors import ArgumentError, QueryError, UnsupportedError
from dither.plan.text import unwritable
from dither.sql.allow_list import WRITTEN
from dither.sql.options import MARKS, Options, without_options

__all__ = [
    "Reading",
    "part_of",
    "read_condition",
    "read_statement",
]

LONGEST_TEXT = 100_000
"""Characters of a query."""
BYTE_ORDER_MARK = "\ufeff"
MOST_TOKENS = 10_000
"""Words, numbers and signs of a query: thousands of conditions, or of values in a list."""
DEEPEST_BRACKETS = 25
"""Brackets and CASEs inside one another; sqlglot's parser recurses some 25 frames for each."""
DEEPEST_TREE = 80
"""Nodes inside one another, where a chain of ANDs or of ORs counts as one."""

MOST_AROUND = 6
"""Tokens that are tried on either side of a node's own, for the brackets and words around them."""
LONGEST_WORDS = 200
"""Characters of a query that a message quotes."""

_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PAIRS = {
    TokenType.R_PAREN: TokenType.L_PAREN,
    TokenType.R_BRACKET: TokenType.L_BRACKET,
    TokenType.R_BRACE: TokenType.L_BRACE,
}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.INTERVAL}
_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN, TokenType.VALUES}
_WRITE = "write one SELECT ... FROM ... GROUP BY ..."
# What the parser does not say the place of, beside the names that it has for it itself.
_OTHER_NAMES = {
    "ArgMax": ("ARGMAX", "MAX_BY"),
    "ArgMin": ("ARGMIN", "MIN_BY"),
    "GroupConcat": ("LISTAGG", "STRING_AGG", "STRINGAGG"),
    "PercentileDisc": ("QUANTILE_DISC",),
    "Quantile": ("QUANTILE_CONT",),
    "StrPosition": ("POSITION",),
}
# Words that sqlglot's tokenizer leaves as names and its parser takes as part of the grammar.
_GRAMMAR = {"nulls", "last", "within", "group", "zone", "leading", "trailing", "both"}


@dataclass(frozen=True, slots=True)
class Reading:
    """What sqlglot has made of a text."""

    text: str
    tree: exp.Expr
    tokens: tuple[Token, ...]
    options: Options = field(default_factory=Options)
    """How far one unit may count, where the text says so."""

    def words(self, node: exp.Expr) -> str | None:
        """How a node of the tree was written; ``None`` where that is not known.

        sqlglot says where names and constants stand, and of all else nothing. So the words are the
        shortest run of tokens around those of the node that is read as the same node.
        """
        starts = {token.start: i for i, token in enumerate(self.tokens)}
        found = [starts.get(n.meta["start"]) for n in node.walk() if "start" in n.meta]
        inside = [i for i in found if i is not None]
        if not inside:
            return None
        first, last = min(inside), max(inside)
        for before, after in product(range(MOST_AROUND), repeat=2):
            run = self.tokens[max(first - before, 0) : last + after + 1]
            text = self.text[run[0].start : run[-1].end + 1]
            if len(text) <= LONGEST_WORDS and _unpaired(run) is None and _same(text, node):
                return " ".join(text.split())
        return None

    def check(self) -> None:
        """Refuse a text of which the parser has dropped a constant or a name.

        sqlglot does so in places: it reads ``DATE_TRUNC('month', x, 'UTC')`` without the zone. To
        be called once the whole tree is understood, since other refusals say more.
        """
        _conserved(self.tokens, self.tree)


def read_statement(text: str) -> Reading:
    """The one statement of a text.

    Raises
    ------
    QueryError
        Where it is empty, too long, too deep, more than one statement, or not SQL.
    UnsupportedError
        Where it is not a query.
    """
    tokens = _tokens(text, "the query")
    first = tokens[0]
    if first.token_type not in _STARTS:
        raise UnsupportedError(f"a query cannot start with {_shown(first.text)}; {_WRITE}")
    if MARKS.isdisjoint(token.text.upper() for token in tokens):
        return _tree(text, tokens, None)
    tokens, options = without_options(tokens)
    return replace(_tree(text, tokens, None), options=options)


def read_condition(text: str) -> Reading:
    """The one expression of a text, with the errors of ``read_statement``."""
    tokens = _tokens(text, "the expression")
    if tokens[0].token_type in _STARTS - {TokenType.L_PAREN}:
        raise UnsupportedError(
            f"an expression cannot start with {_shown(tokens[0].text)}; write one such as age >= 18"
        )
    return _tree(text, tokens, exp.Condition)


def part_of(text: str) -> str:
    """An expression as a part of a longer text: without what would end that one, or be its end.

    Parameters
    ----------
    text : str
        In SQL, which may end in comments and ``;``.

    Raises
    ------
    QueryError, UnsupportedError
        As of ``read_condition``, where it is no expression by its signs and words.

    Examples
    --------
    >>> part_of(" age > 18 ; -- of age")
    'age > 18'
    """
    tokens = _tokens(text, "the expression")
    return text[tokens[0].start : tokens[-1].end + 1]


def _tokens(text: str, what: str) -> list[Token]:
    if not isinstance(text, str):
        raise ArgumentError(f"{what} must be a text; got {type(text).__name__}")
    if len(text) > LONGEST_TEXT:
        raise QueryError(f"{what} is longer than {LONGEST_TEXT} characters; shorten it")
    fault = unwritable(text, null=True)
    if fault is not None:
        raise QueryError(f"{what} {fault}")
    if text.startswith(BYTE_ORDER_MARK):  # as some editors begin a file
        text = " " + text[1:]
    try:
        tokens = list(Dialect.get_or_raise("duckdb").tokenize(text))
    except Exception:
        # Whatever the tokenizer trips over, the reason is the text, and its own message is cut.
        raise QueryError(
            f"{what} cannot be read: a quotation mark or a comment is not closed"
        ) from None
    if len(tokens) > MOST_TOKENS:
        raise QueryError(
            f"{what} has {len(tokens):,} words and signs, more than {MOST_TOKENS:,}; keep long "
            "lists of values in a public table and JOIN it"
        )
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise QueryError(f"{what} is empty; write it out")
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise UnsupportedError(f"{what} holds several statements; send them one at a time")
    depth = run = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        run = run + 1 if kind in _PREFIX else 0
        if max(depth, run) > DEEPEST_BRACKETS:
            raise _too_deep(what)
    return tokens


def _tree(text: str, tokens: list[Token], into: type[exp.Expr] | None) -> Reading:
    what = "the query" if into is None else "the expression"
    parser = Dialect.get_or_raise("duckdb").parser()
    try:
        found = parser.parse_into(into, tokens, text) if into else parser.parse(tokens, text)
    except ParseError as error:
        raise QueryError(_syntax(what, error)) from None
    except RecursionError:
        raise _too_deep(what) from None
    except Exception:
        # A parser that fails in any other way has not understood the text either.
        raise QueryError(f"{what} cannot be read; check its syntax") from None
    if len(found) != 1 or not isinstance(found[0], exp.Expr):
        raise QueryError(f"{what} cannot be read; {_WRITE}")
    # The parser itself does not ask for the last bracket of CEIL(x), FLOOR(x) and a few more.
    alone = _unpaired(tokens)
    if alone is not None:
        fault = "closes nothing" if alone.token_type in _PAIRS else "is not closed"
        raise QueryError(
            f"{what} cannot be read: the bracket {alone.text!r} {fault} "
            f"(line {alone.line}, column {alone.col})"
        )
    tree = found[0]
    if _depth(tree) > DEEPEST_TREE:
        raise _too_deep(what)
    _keep_names(tree, tokens)
    return Reading(text, tree, tuple(tokens))


def _unpaired(tokens: Sequence[Token]) -> Token | None:
    """The first bracket that closes none, or else the last that is not closed."""
    still: list[Token] = []
    for token in tokens:
        if token.token_type in _PAIRS.values():
            still.append(token)
        elif token.token_type in _PAIRS:
            if not still or still[-1].token_type is not _PAIRS[token.token_type]:
                return token
            still.pop()
    return still[-1] if still else None


def _same(text: str, node: exp.Expr) -> bool:
    """Whether a part of a query is by itself read as the node."""
    try:
        return bool(Dialect.get_or_raise("duckdb").parse_into(exp.Condition, text) == [node])
    except Exception:
        return False


def _too_deep(what: str) -> QueryError:
    return QueryError(f"{what} is nested too deeply; derive a column in the data instead")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _syntax(what: str, error: ParseError) -> str:
    place = error.errors[0] if error.errors else {}
    near = str(place.get("highlight") or "").strip()
    line, column = place.get("line"), place.get("col")
    text = str(place.get("description") or "")
    reason = "this is unexpected"
    if text.startswith("Expecting ") and len(text) < 30:
        reason = f"expected {text.removeprefix('Expecting ')}"
    elif text.startswith("Required"):
        reason = "something is missing"
    if not isinstance(line, int) or not isinstance(column, int):
        return f"{what} cannot be read: {reason}"
    at = f" at {_shown(near)}" if near else ""
    first = max(1, column - len(near) + 1)
    return f"{what} cannot be read: {reason}{at} (line {line}, column {first})"


def _depth(tree: exp.Expr) -> int:
    deepest = 0
    stack: list[tuple[exp.Expr, int]] = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        for child in _children(node):
            chained = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            stack.append((child, depth if chained else depth + 1))
    return deepest


def _children(node: exp.Expr) -> Iterator[exp.Expr]:
    for value in node.args.values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                yield child


def _keep_names(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Note on each function the name that was written, of which the parser makes its own."""
    called = {
        token.start: token
        for token, following in pairwise(tokens)
        if following.token_type is TokenType.L_PAREN
    }
    unplaced: list[exp.Func] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        stack.extend(_children(node))
        token = called.pop(node.meta["start"], None) if "start" in node.meta else None
        if token is not None:
            # ANY_VALUE(x) arrives inside a node of its own.
            named = node.this if isinstance(node, exp.IgnoreNulls) else node
            named.meta[WRITTEN] = token.text
        elif isinstance(node, exp.Func):
            unplaced.append(node)
    for node in unplaced:
        names = {*node.sql_names(), *_OTHER_NAMES.get(type(node).__name__, ())}
        fitting = [token for token in called.values() if token.text.upper() in names]
        if fitting:
            node.meta[WRITTEN] = min(fitting, key=lambda token: token.start).text


def _conserved(tokens: Sequence[Token], tree: exp.Expr) -> None:
    left = Counter[str]()
    stack: list[exp.Expr] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Literal | exp.Identifier | exp.Var | exp.Anonymous | exp.Interval):
            left[_plain(str(node.this))] += 1
        stack.extend(_children(node))
    for i, token in enumerate(tokens):
        kind, text = token.token_type, _plain(token.text)
        following = tokens[i + 1].token_type if i + 1 < len(tokens) else None
        constant = kind in (TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER)
        name = kind is TokenType.VAR and following is not TokenType.L_PAREN
        if not (constant or (name and text not in _GRAMMAR)):
            continue
        if kind is TokenType.STRING and i and tokens[i - 1].token_type is TokenType.INTERVAL:
            # INTERVAL '3 days' is read as a number and a unit.
            left[text] += all(left[part] > 0 for part in text.split())
        fraction = f"0.{text}" if i and tokens[i - 1].token_type is TokenType.DOT else text
        spelling = text if left[text] > 0 else fraction
        if left[spelling] <= 0:
            raise UnsupportedError(
                f"{_shown(token.text)} is not understood where it stands "
                f"(line {token.line}); leave it out"
            )
        left[spelling] -= 1


def _plain(text: str) -> str:
    return text.casefold()
