"""What a figure is: measured here and now, with the bar it has to reach and how it was measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`name` begins with its area. `bar` is None for a figure that is only reported; `at_most` says its direction."""

    name: str
    value: float
    unit: str
    how: str
    bar: float | None = None
    at_most: bool = True

    @property
    def holds(self) -> bool | None:
        """Whether the bar is reached; None where there is none."""
        if self.bar is None:
            return None
        return self.value <= self.bar if self.at_most else self.value >= self.bar

    def row(self) -> dict[str, object]:
        """As `build/bench.json` keeps it."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "bar": self.bar,
            "holds": self.holds,
            "how": self.how,
        }
