"""The search itself: how long, how few trials, how good, beside other searches.

- `--live`: searches of W1-W10 on this machine, each in a fresh process, start-up included: wall time with one
  and with two processors, the search's own share, the winner beside the best of a thousand trials, beside TVM
  where it is installed, warm-started (`--warm`), and what is lost without racing, the cost model or local
  refinement (`--ablation`).
- `--spaces DIR`: recorded spaces, beside the strategies of Kernel Tuner.
- `--scoring`: candidates that the space and the model get through in a second.

Without any of these: live and scoring. Figures of one run compare; a machine with other work on it is told by
the ratio of wall time to processor time, which is printed as well.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from bench.machine import restart_with_threads

#: Part and module, in the order in which they run.
PARTS = {
    name: f"searching.{name}" for name in ("live", "spaces", "scoring") if find_spec(f"searching.{name}")
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="searches on this machine")
    parser.add_argument("--scoring", action="store_true", help="candidates a second")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    restart_with_threads(1)
    modules = {name: import_module(module) for name, module in PARTS.items()}
    for module in modules.values():
        module.add_arguments(parser)
    options = parser.parse_args()
    chosen = [name for name in modules if getattr(options, name, None)]
    from bench.machine import facts

    results, tables = {"machine": facts()}, []
    for name in chosen or [name for name in modules if name != "spaces"]:
        results[name] = modules[name].run(options)
        table = getattr(modules[name], "tables", None)
        if table is not None:
            tables.append(table(results[name]))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    if options.markdown:
        options.markdown.write_text("\n\n".join(tables) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
