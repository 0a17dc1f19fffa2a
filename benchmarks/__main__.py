"""`python -m benchmarks [AREA]`: measure every area, or one, print a table, keep the rows in build/bench.json.

An area is a module in this folder with `measure() -> Iterator[Figure]`; figures appear as they are measured.
"""

import importlib
import json
import sys
from pathlib import Path
from pkgutil import iter_modules

from benchmarks.figures import Figure

OUT = Path("build/bench.json")


def areas() -> tuple[str, ...]:
    """Names of the modules that measure something."""
    names = [module.name for module in iter_modules([str(Path(__file__).parent)])]
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names if name != "__main__"}
    return tuple(name for name, module in modules.items() if hasattr(module, "measure"))


def show(figure: Figure) -> str:
    """One line of the table."""
    bar = "" if figure.bar is None else f"{'<=' if figure.at_most else '>='} {figure.bar:g} {figure.unit}"
    mark = {True: "holds", False: "MISSED", None: ""}[figure.holds]
    return f"{figure.name:<44} {figure.value:>12.4g} {figure.unit:<8} {bar:<18} {mark}"


def main(wanted: list[str]) -> int:
    """0 when every bar of the areas that ran is reached, 1 when not, 2 for an unknown area."""
    known = areas()
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"There is no area {', '.join(unknown)}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    chosen = tuple(wanted) or known
    kept = json.loads(OUT.read_text()) if OUT.is_file() else []
    rows = {row["name"]: row for row in kept} if wanted else {}
    missed = 0
    for area in chosen:
        for figure in importlib.import_module(f"benchmarks.{area}").measure():
            print(show(figure), flush=True)
            rows[figure.name] = figure.row()
            missed += figure.holds is False
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(list(rows.values()), indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
