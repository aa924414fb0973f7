"""A notebook from open to learn, run cell by cell: ``python notebook.py FOLDER``.

Run by the interpreter of an environment that a user would have; prints what the cells put out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

CELLS = {
    "open": """
import dither as dt
import polars as pl

n = 2000
visits = pl.DataFrame({
    "who": range(n),
    "age": [20 + i % 60 for i in range(n)],
    "region": ["north", "south"] * (n // 2),
    "ill": [i % 60 > 30 for i in range(n)],
})
columns = {
    "age": {"type": "integer", "bounds": [0, 100]},
    "region": {"values": ["north", "south"]},
    "ill": {"type": "boolean"},
}
table = {"source": "-", "unit": "who", "max_rows": 2, "max_groups": 1, "columns": columns}
policy = {
    "budget": {"epsilon": 10, "delta": 1e-6, "ledger": "visits.ledger"},
    "tables": {"visits": table},
}
session = dt.open(policy, sources={"visits": visits})
session
""",
    "ask": """
question = session.sql("SELECT region, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY region")
question
""",
    "explain": "question.explain()",
    "preview": "question.preview(epsilon=1)",
    "release": "release = question.release(epsilon=1)\nrelease",
    "balance": "session.balance()",
    "ledger": "session.ledger",
    "certificate": "release.certificate",
    "plot": "release.plot()",
    "plot beside pyplot": """
import matplotlib.pyplot as plt
release.plot()
""",
    "learn": """
model = session.table("visits").learn(epsilon=1).additive("ill ~ age").release()
model
""",
    "draw what was learned": "model.plot()",
    "closed": "session.close()\nsession.ledger",
}
"""What a cell is about, and its code."""


def main(folder: Path) -> None:
    """What each cell puts out, as JSON: kinds of content, each with its text."""
    import nbformat
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(code.strip()) for code in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(
        notebook, timeout=300, allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    nbformat.write(notebook, folder / "run.ipynb")
    shown = {name: cell["outputs"] for name, cell in zip(CELLS, notebook.cells, strict=True)}
    print(json.dumps(shown))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
