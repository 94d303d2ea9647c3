"""`python -m benchmarks [scheduler|memory|kinds|schema|server]...`: everything where nothing is named."""

import importlib
import sys

import structlog

# Imported when they are run: what one part loads would count as memory of another.
PARTS = {
    "scheduler": ("scheduler", "growth"),
    "memory": ("scheduler", "memory"),
    "kinds": ("kinds", "overhead"),
    "schema": ("schema", "checks"),
    "server": ("server", "footprint"),
}


def _drop(_: object, __: str, ___: object) -> dict[str, object]:
    raise structlog.DropEvent


def main() -> None:
    """Run the parts that are asked for."""
    structlog.configure(processors=[_drop])
    asked = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in asked if name not in PARTS]:
        sys.exit(f"benchmarks: no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for name in asked:
        module, function = PARTS[name]
        getattr(importlib.import_module(f"benchmarks.{module}"), function)()


if __name__ == "__main__":
    main()
