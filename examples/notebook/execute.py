# SPDX-License-Identifier: Apache-2.0
"""Run the cells of the notebook without Jupyter: what they print, and their figure as a file.

.venv/bin/python examples/notebook/execute.py runs/two

A notebook is JSON; its cells run here in order, in one namespace, as a kernel would run them.
Jupyter and its 60 packages are for people who edit it.
"""

import json
import os
import sys
from pathlib import Path

NOTEBOOK = Path(__file__).with_name("fct_by_size.ipynb")


def main() -> int:
    """Run it on the folder of results that the command line names."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIR, a folder that `weft compare --out DIR` wrote")
    os.environ["WEFT_RUNS"] = sys.argv[1]
    os.environ["MPLBACKEND"] = "agg"  # draws without a screen
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"], 1):
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), f"{NOTEBOOK.name}, cell {number}", "exec")
            exec(code, names)
    print(f"figure: {sys.argv[1]}/fct-by-size.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
