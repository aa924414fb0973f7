"""A served policy and a browser that opens its page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from service.loopback import OnLoopback
from service.page.visitor import Visitor

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has no windows, and takes half of the processor's time."""

CHROMIUM = next(filter(None, map(shutil.which, NAMES)), "")

QUIET = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""A browser that is tested speaks to nobody but the page."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a file: while it is open its event loop runs in this thread."""
    if not CHROMIUM:
        pytest.skip("no Chromium is installed here")
    # As root it starts without its sandbox alone, as in containers.
    alone = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *alone])
        yield found
        found.close()


@pytest.fixture
def visit(browser: Browser, loopback: OnLoopback) -> Iterator[Callable[..., Visitor]]:
    """Open browsers; in the end no page had an error or asked another host for anything."""
    contexts: list[BrowserContext] = []
    visitors: list[Visitor] = []

    def opened(
        who: str | None = None,
        *,
        width: int = 1280,
        theme: str = "light",
        language: str = "en",
        service: OnLoopback = loopback,
    ) -> Visitor:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
            locale={"en": "en-GB", "zh": "zh-CN"}[language],
        )
        contexts.append(context)
        visitors.append(Visitor(context, service))
        if who is not None:
            visitors[-1].sign_in(who)
        return visitors[-1]

    yield opened
    for context in contexts:
        context.close()
    for one in visitors:
        assert not one.errors, one.errors
        assert not one.elsewhere, one.elsewhere


IMAGES = Path(__file__).resolve().parents[3] / "docs" / "images" / "page"


@pytest.fixture
def picture(tmp_path: Path) -> Callable[..., Path]:
    """Take a picture of a view: for the docs where DITHER_PICTURES is set, else for nobody."""

    def taken(page: Page, name: str, whole: bool = True) -> Path:
        folder = IMAGES if os.environ.get("DITHER_PICTURES") else tmp_path
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{name}.png"
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=file, full_page=whole)
        if folder == IMAGES:
            from PIL import Image

            # 128 colours are enough for a page, and take a third of the room.
            few = Image.open(file).convert("RGB").quantize(128, dither=Image.Dither.NONE)
            few.save(file, optimize=True)
        return file

    return taken
