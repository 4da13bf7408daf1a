"""`python -m benchmarks` runs all of them; `python -m benchmarks transactions` one."""

import importlib
import pkgutil
import sys

import benchmarks


def main() -> None:
    known = [
        module.name
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if hasattr(importlib.import_module(f"benchmarks.{module.name}"), "run")
    ]
    for name in sys.argv[1:] or known:
        if name not in known:
            sys.exit(f"no benchmark {name!r}; there are: {', '.join(known)}")
        importlib.import_module(f"benchmarks.{name}").run()


if __name__ == "__main__":
    main()
