"""Somebody at a browser."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Page

from service.loopback import OnLoopback


class Visitor:
    """Somebody at a browser, whose errors and requests are kept.

    Parameters
    ----------
    context : BrowserContext
    service : OnLoopback
    """

    def __init__(self, context: BrowserContext, service: OnLoopback) -> None:
        self.service, self.page = service, context.new_page()
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        self.expected: set[str] = set()
        self.home = f"http://127.0.0.1:{service.port}/p/{service.desk.name}"
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        expected = any(part in message.text for part in self.expected)
        if message.type in ("error", "warning") and not expected:
            self.errors.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((f"http://127.0.0.1:{self.service.port}/", "blob:")):
            self.elsewhere.append(request.url)

    def sign_in(self, who: str) -> Page:
        """Come in as somebody."""
        self.page.goto(f"{self.home}/sign-in")
        self.page.fill("#key", self.service.keys[who])
        self.page.click("button.main")
        self.page.wait_for_url(lambda url: "/sign-in" not in url)
        return self.page

    def go(self, place: str) -> Page:
        """Open a place."""
        self.page.goto(f"{self.home}/{place}")
        return self.page
