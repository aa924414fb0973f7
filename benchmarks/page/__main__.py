"""The page: bytes and milliseconds of its first view, and how soon a curve follows a keystroke.

    python -m benchmarks.page [--rows N] [--keys N]

`dither serve` runs as a process of its own over a table of so many rows, and all calls go over
loopback. Measured are what a browser loads to ask for the first time, compressed where it is; and
the part beside the question, asked for as somebody types several questions letter by letter and
then moves the price. Its milliseconds stand beside the processor's, which other work on the machine
changes less. Where a Chromium and Playwright are installed, the same is timed in a browser: from
navigation to the page's load, and from a key to the new picture, the wait for further keys
included.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.service import ADDRESS, started, written
from dither.policy._policy import read_policy
from dither.service._database import Database
from dither.service._settings import read_settings
from dither.service._tables import SERVICE
from dither.service.access._people import People
from dither.service.access._roles import Role

TYPED = {
    "count and mean": "SELECT region, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY region",
    "median": "SELECT region, MEDIAN(cost) AS m FROM visits GROUP BY region",
    "five measures": "SELECT region, COUNT(*) AS n, AVG(cost) AS m, STDDEV(cost) AS s, "
    "QUANTILE_CONT(cost, 0.9) AS q FROM visits WHERE cost > 10 GROUP BY region",
}

TICK = os.sysconf("SC_CLK_TCK")


def processor(pid: int) -> float:
    """Milliseconds of the processor that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / TICK


def first_view(http: httpx.Client, pid: int) -> None:
    """What asking for the first time loads."""
    for turn in ("first", "again"):
        before, begun = processor(pid), time.perf_counter()
        page = http.get("/p/visits/ask")
        took = 1000 * (time.perf_counter() - begun)
        names = sorted(set(re.findall(r'(?:href|src)="(/static/[^"#]+)', page.text)))
        sizes = {}
        for name in names:
            with http.stream("GET", name) as answer:
                sizes[name.split("?")[0]] = len(b"".join(answer.iter_raw()))
        used = processor(pid) - before
        whole = 1000 * (time.perf_counter() - begun)
        total = len(page.content) + sum(sizes.values())
        print(
            f"first view, {turn}: {total / 1000:.1f} kB (target 200), {took:.0f} ms the page, "
            f"{whole:.0f} ms with all that it loads, one after the other (target 500), "
            f"processor {used:.0f} ms"
        )
    print(
        "  " + ", ".join(f"{n.rpartition('/')[2]} {s / 1000:.1f}" for n, s in sizes.items()),
        f"and the page {len(page.content) / 1000:.1f} kB",
    )


def typed(http: httpx.Client, csrf: str, pid: int, keys: int) -> None:
    """The part beside the question, asked for at each of so many last letters of a question."""

    def asked(sql: str, epsilon: str) -> float:
        begun = time.perf_counter()
        form = {"sql": sql, "epsilon": epsilon, "draft": "a", "size": "1000"}
        answer = http.post("/p/visits/ask/price", data=form, headers={"x-csrf-token": csrf})
        assert answer.status_code == 200
        return 1000 * (time.perf_counter() - begun)

    for name, sql in TYPED.items():
        for what, texts in {
            "as it is typed": [(sql[:-at] if at else sql, "0.5") for at in range(keys - 1, -1, -1)],
            "other columns' names": [
                (f"{sql} -- {i}".replace(" AS m", f" AS m{i}"), "0.5") for i in range(keys)
            ],
            "as the price moves": [(sql, f"{0.1 * 1.1**i:.2g}") for i in range(keys)],
        }.items():
            before = processor(pid)
            times = [asked(*one) for one in texts]
            used = (processor(pid) - before) / len(times)
            print(
                f"  {name:16} {what:22} median {statistics.median(times):5.0f} ms, "
                f"worst {max(times):5.0f} ms, processor {used:5.0f} ms each"
            )


def in_a_browser(key: str) -> None:
    """The same with a browser's own clock."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    if chromium is None:
        return
    with sync_playwright() as playwright:
        alone = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=alone)
        page = browser.new_page()
        page.goto(f"{ADDRESS}/p/visits/sign-in")
        page.fill("#key", key)
        page.click("button.main")
        page.wait_for_url("**/ask")
        page.wait_for_selector(".priced svg")
        loaded = page.evaluate(
            "performance.timing.loadEventEnd - performance.timing.navigationStart"
        )
        print(f"in a browser: {loaded} ms until the page has loaded (target 500)")
        page.evaluate(FOLLOWED)
        page.locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("\nORDER BY n")
        page.wait_for_timeout(800)
        for letter in (" ", "D", "E", "S", "C"):
            page.keyboard.type(letter)
            page.wait_for_timeout(600)
        times = page.evaluate("globalThis.followed")
        print(
            "  from a key to the new picture: "
            + ", ".join(f"{one:.0f}" for one in times)
            + " ms (target 150)"
        )
        browser.close()


FOLLOWED = """() => {
  globalThis.followed = [];
  let typed = 0;
  document.addEventListener("keydown", () => { typed = performance.now(); }, true);
  new MutationObserver(() => {
    if (typed && document.querySelector("#price .priced")) {
      followed.push(performance.now() - typed);
      typed = 0;
    }
  }).observe(document.getElementById("price"), { childList: true });
}"""


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=12)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        policy = written(Path(folder), given.rows)
        read = read_policy(policy)
        database = Database(read_settings(read).database, SERVICE)
        people = People(database)
        people.add("ann", Role.ANALYST)
        key = people.new_key("ann", 1).key
        database.close()
        print(f"{given.rows:,} rows; load of the machine before: {os.getloadavg()[0]:.1f}")
        service, _ = started(policy)
        try:
            with httpx.Client(base_url=ADDRESS, headers={"accept-encoding": "gzip"}) as http:
                http.post("/p/visits/sign-in", data={"key": key})
                csrf = http.cookies["dither_visits_csrf"]
                first_view(http, service.pid)
                typed(http, csrf, service.pid, given.keys)
            in_a_browser(key)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()
        print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
