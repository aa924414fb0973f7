"""A view as it goes out: a template, what it shows, and the frame around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from dither.service.access._entry import NOBODY, cookie_name
from dither.service.access._people import Identity
from dither.service.page._places import places
from dither.service.page._static import address_names, address_of
from dither.service.page._texts import LANGUAGES, PageWords, chosen, words

__all__ = ["PageView", "language", "made_ready", "render"]

TEMPLATES = Path(__file__).parent / "templates"

LANGUAGE_COOKIE = "dither_language"

THEME_COOKIE = "dither_theme"

THEMES = ("light", "dark")

FIRST = (
    *("base.html", "_badge.html", "sign_in.html", "ask/ask.html", "ask/_price.html"),
    "ask/_costs.html",
    *("ask/_release.html", "answers/answer.html", "answers/_state.html"),
)
"""Templates of whoever comes in and asks, with all that they extend and include."""


@dataclass(frozen=True, slots=True)
class PageView:
    """What a view shows.

    Parameters
    ----------
    template : str
        Its file. One whose name begins with ``_`` is a part of a view, and goes out without frame.
    values : mapping of str to object
        What stands in it.
    status : int
    headers : mapping of str to str
    """

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals.update(asset=address_of, languages=LANGUAGES)
    made.filters.update(num=number, fraction=fraction)
    return made


def made_ready() -> None:
    """Compile what the first visitor would wait for, and read its words."""
    for name in FIRST:
        _environment().get_template(name)
    for code in LANGUAGES:
        words(code)
    for name in address_names():
        address_of(name)


def language(request: Request) -> PageWords:
    """The words in which whoever asks is answered."""
    given = request.cookies.get(LANGUAGE_COOKIE)
    return words(chosen(given, request.headers.get("accept-language")))


def number(value: Any, digits: int = 4) -> str:
    """A number as people read it: so many digits that count, and thousands apart.

    >>> number(1234567.89), number(0.0123456), number(12), number(None)
    ('1,234,568', '0.01235', '12', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    found = float(value)
    if found != found or found in (float("inf"), float("-inf")):
        return "∞" if found > 0 else "–∞" if found < 0 else "–"
    if abs(found) >= 10 ** (digits - 1):
        return _signed(f"{found:,.0f}")
    return _signed(f"{found:.{digits}g}")


def _signed(text: str) -> str:
    """With the sign that is as wide as a digit."""
    return f"−{text[1:]}" if text.startswith("-") else text


def fraction(text: str | None) -> str:
    """An exact number, as a price is said: short where that is exact enough to be read.

    >>> fraction("1/2"), fraction("1/3"), fraction("1/1000000"), fraction(None)
    ('0.5', '0.3333', '1e-06', '–')
    """
    return "–" if text is None else number(float(Fraction(text)))


def render(
    shown: PageView,
    request: Request,
    policy: str,
    who: Identity | None,
    secure: bool,
    waiting: int = 0,
) -> Response:
    """A view as HTML, for whoever asks and in their language.

    Parameters
    ----------
    shown : PageView
    request : Request
    policy : str
        Its name in addresses.
    who : Identity, optional
        None where nobody is signed in.
    secure : bool
    waiting : int
        How many questions wait until an owner decides on them.
    """
    say = language(request)
    someone = None if who is None or who is NOBODY else who
    theme = request.cookies.get(THEME_COOKIE)
    values = {
        "t": say,
        "lang": say.code,
        "theme": theme if theme in THEMES else "auto",
        "policy": policy,
        "base": f"/p/{policy}",
        "who": someone,
        "here": request.url.path,
        "waiting_count": waiting,
        "places": [] if who is None else places(who, policy),
        # The page's script sends it along with every change; see `proves_its_page`.
        "csrf_cookie": f"{cookie_name(policy, secure)}_csrf",
        **shown.values,
    }
    text = _environment().get_template(shown.template).render(values)
    headers = dict(shown.headers)
    headers.setdefault("vary", "cookie, accept-language, hx-request")
    return HTMLResponse(Markup(text), shown.status, headers)
