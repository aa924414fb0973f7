"""Files that are handed in to be checked: what holds, what does not, and what is no file at all."""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from dither.query._release import Release
from dither.service.page._reading import UnreadableError, table_in
from dither.service.publish import publish
from service.hospital import Served, served, written
from service.page.accounts.spent import HOSTILE
from service.page.visitor import Visitor

GROUPED = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


def given(name: str, data: bytes) -> dict[str, str]:
    """A file as the page sends it."""
    return {"name": name, "data": base64.b64encode(data).decode()}


def handed(house: Served, who: str, *files: dict[str, str]) -> Any:
    """The verdict on some files."""
    return house.http.post(
        "/p/visits/check",
        json={"files": list(files)},
        headers={"authorization": f"Bearer {house.keys[who]}", "hx-request": "true"},
    )


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A service that has released something, which was published beside it."""
    folder = tmp_path_factory.mktemp("checked")
    with served(written(folder)) as served_here:
        found: Any = served_here
        answer = found.released("ann", sql=GROUPED, epsilon="5")["answer"]
        publish(Release(dict(answer["content"])), "regions", folder / "released")
        found.content = answer["content"]
        found.folder = folder / "released"
        yield found


def test_a_certificate_holds_and_a_changed_one_does_not(house: Any) -> None:
    """In words, with what it does not say; for each role that may check."""
    certificate = house.content["certificate"]
    for who in ("ann", "olga", "aude"):
        found = handed(house, who, given("c.json", json.dumps(certificate).encode()))
        assert "The certificate holds" in found.text
        assert "<code>c.json</code>" in found.text
        assert "SELECT region, COUNT(*) AS n FROM visits GROUP BY region</pre>" in found.text
        assert "What it does not say" in found.text
    changed = certificate | {"question": {"sql": HOSTILE}}
    found = handed(house, "ann", given("c.json", json.dumps(changed).encode()))
    assert found.status_code == 200
    assert "does not hold" in found.text
    assert "<code>c.json</code>" in found.text
    # A release as it was saved holds its values, too.
    whole = json.dumps(house.content)
    assert (
        "values are those that were released"
        in handed(house, "ann", given("r.json", whole.encode())).text
    )
    column = next(c for c in house.content["columns"] if c["name"] == "n")
    other = whole.replace(f'"values": {column["values"]}', '"values": [1, 2]')
    assert other != whole
    assert "does not hold" in handed(house, "ann", given("r.json", other.encode())).text


def test_a_published_table_is_checked_against_the_ledger(house: Any) -> None:
    """As Parquet and as CSV, by itself or with its certificates; one changed value is seen."""
    parquet = (house.folder / "regions.parquet").read_bytes()
    beside = given("certificates.parquet", (house.folder / "certificates.parquet").read_bytes())
    table = pl.read_parquet(io.BytesIO(parquet))
    csv = table.write_csv().encode()
    certificate = given("c.json", json.dumps(house.content["certificate"]).encode())
    for files in (
        [given("regions.parquet", parquet)],
        [given("regions.csv", csv)],
        [given("regions.parquet", parquet), beside],
        [given("regions.parquet", parquet), certificate],
    ):
        found = handed(house, "aude", *files)
        assert "The table holds" in found.text, found.text
        assert all(f"<code>{one['name']}</code>" in found.text for one in files)
        assert "GROUP BY region</pre>" in found.text
    assert "the table is what was released" in handed(house, "ann", given("regions.csv", csv)).text
    for column, value in (("n", 7), ("n_low", 1), ("region", HOSTILE), ("line", 9)):
        kind = table.schema[column]
        changed = table.with_columns(
            pl.when(pl.int_range(pl.len()) == 0)
            .then(pl.lit(value).cast(kind, strict=False))
            .otherwise(pl.col(column))
            .alias(column)
        )
        found = handed(house, "ann", given("x.csv", changed.write_csv().encode()))
        assert "does not hold" in found.text, column
        assert HOSTILE not in found.text
    short = table.head(1).write_csv().encode()
    assert "does not hold" in handed(house, "ann", given("x.csv", short)).text
    foreign = table.with_columns(certificate=pl.lit("ab" * 32)).write_csv().encode()
    assert "no certificate of an id" in handed(house, "ann", given("x.csv", foreign)).text


def test_hostile_files_are_refused_calmly(house: Any) -> None:
    """Nothing of them is quoted, nothing fails, and the service goes on."""
    deep = b"[" * 100_000 + b"]" * 100_000
    for name, data in (
        ("a.json", b"\xff\xfe"),
        ("a.json", deep),
        ("a.json", b'{"a": 1, "a": 2}'),
        ("a.json", b"[1]"),
        ("a.json", b'{"a": NaN}'),
        ("a.parquet", b"PAR1" + b"\0" * 400 + b"PAR1"),
        ("a.parquet", b""),
        ("a.csv", b"\0\xff" * 1000),
        ("a.csv", b"a," * 50_000 + b"\n"),
    ):
        found = handed(house, "ann", given(name, data))
        assert found.status_code == 200, (name, data[:20])
        said = ("cannot be read", "does not hold", "could not be checked")
        assert any(one in found.text for one in said)
    for name, data in ((f"{HOSTILE}.exe", b"x"), ("../../x.sh", b"x"), ("x", b"x")):
        found = handed(house, "ann", given(name, data))
        assert found.status_code == 400
        assert HOSTILE not in found.text
    wrong: list[list[Any]] = [
        [],
        [1],
        [{"name": "a.json", "data": "%%%"}],
        [{"name": "a.json"}],
        [{"name": "a.json", "data": "e30=", "more": 1}],
        [given("a.json", b"{}")] * 4,
        [given("a.json", b"{}")] * 2,
    ]
    for files in wrong:
        headers = {"authorization": f"Bearer {house.keys['ann']}", "hx-request": "true"}
        found = house.http.post("/p/visits/check", json={"files": files}, headers=headers)
        assert found.status_code == 400, files


def test_a_file_that_unpacks_to_too_much_ends_alone() -> None:
    """A small file of many rows, and one of a large text: neither is a table that is read."""
    many, large = io.BytesIO(), io.BytesIO()
    pl.DataFrame({"a": pl.repeat(1, 3_000_000, eager=True)}).write_parquet(many)
    pl.DataFrame({"a": ["x" * 4_000_000] * 40}).write_parquet(
        large, compression="zstd", statistics=False
    )
    for one in (many, large):
        assert len(one.getvalue()) < 2**20
        with pytest.raises(UnreadableError):
            table_in(one.getvalue(), "parquet")


def test_files_are_chosen_or_dropped_in_a_browser(
    visit: Callable[..., Visitor], picture: Callable[..., Any], tmp_path: Path
) -> None:
    """The verdict stands on the page; what is too large is not even sent."""
    visitor = visit("ann")
    session = visitor.service.desk
    who = session.people.by_key(visitor.service.keys["ann"])
    assert who is not None
    job = session.ask(who[0], {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.5"})
    until = time.monotonic() + 60
    while session.jobs.get(job.id).state.value != "done" and time.monotonic() < until:
        time.sleep(0.05)
    content = session.answer(session.jobs.get(job.id))["content"]
    file = tmp_path / "release.json"
    file.write_text(json.dumps(content))
    page = visitor.go("check")
    page.set_input_files("#files", str(file))
    page.locator("#verdict .fine").wait_for()
    assert "agrees with entry" in page.locator("#verdict").inner_text()
    picture(page, "check-light-1280-en")
    (tmp_path / "large.csv").write_bytes(b"x" * 2**20)
    page.set_input_files("#files", str(tmp_path / "large.csv"))
    page.locator("#verdict .warning", has_text="too large").wait_for()
    # Dropped by a mouse, as a browser hands it over.
    page.evaluate(
        """(text) => {
          const data = new DataTransfer();
          data.items.add(new File([text], "c.json"));
          const how = { dataTransfer: data, bubbles: true, cancelable: true };
          document.dispatchEvent(new DragEvent("drop", how));
        }""",
        json.dumps(content["certificate"] | {"digest": HOSTILE}),
    )
    page.locator("#verdict .refusal").wait_for()
    assert page.locator("img").count() == 0
    phone = visit("audrey", theme="dark", language="zh", width=390).go("check")
    phone.set_input_files("#files", str(file))
    phone.locator("#verdict .fine").wait_for()
    picture(phone, "check-dark-390-zh")
