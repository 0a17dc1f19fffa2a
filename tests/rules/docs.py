"""Draws the generated pages of docs/ anew: `make docs`. A test keeps them equal to the code."""

from pathlib import Path

from bot.core.lifecycle import LIFECYCLES

ROOT = Path(__file__).resolve().parents[2]


def lifecycle_page() -> str:
    """docs/lifecycle.md from the tables of `core.lifecycle`."""
    lines = [
        "# Lifecycles",
        "",
        "Drawn from `bot/core/lifecycle.py` by `make docs`. A row in a state that is not final is woken by what stands",
        "beside it, and cancel is legal in each; any process may die at any line, and the row is claimed again.",
    ]
    for noun, states in LIFECYCLES.items():
        lines += ["", f"## {noun}", "", "| state | may become | woken |", "|---|---|---|"]
        for name, state in states.items():
            after = ", ".join(each for each in state.after if each != name) or ("nothing: final" if state.final else "")
            lines.append(f"| {name} | {after} | {state.woken} |")
    return "\n".join(lines) + "\n"


PAGES = {"lifecycle.md": lifecycle_page}


def main() -> None:
    """Write every page."""
    for name, draw in PAGES.items():
        (ROOT / "docs" / name).write_text(draw())


if __name__ == "__main__":
    main()
