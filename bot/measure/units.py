"""Units that can be turned into each other."""

_FAMILIES = (
    {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    {
        **{"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
        **{"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    },
    {"FLOPs": 1.0, "kFLOPs": 1e3, "MFLOPs": 1e6, "GFLOPs": 1e9, "TFLOPs": 1e12, "PFLOPs": 1e15},
    {"MACs": 1.0, "kMACs": 1e3, "MMACs": 1e6, "GMACs": 1e9, "TMACs": 1e12, "PMACs": 1e15},
    {"fraction": 1.0, "1": 1.0, "%": 0.01, "pp": 0.01},
)


def factor(written: str, unit: str) -> float:
    """What a value in `written` is multiplied by to be one in `unit`. Raises ValueError where that makes no sense."""
    for family in _FAMILIES:
        if written in family and unit in family:
            return family[written] / family[unit]
    known = "; ".join(", ".join(family) for family in _FAMILIES)
    raise ValueError(
        f"{written} cannot be turned into {unit or 'a number without a unit'}; these can, in groups: {known}"
    )
