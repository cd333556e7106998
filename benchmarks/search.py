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
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.machine import restart_with_threads

#: Part and module, in the order in which they run.
PARTS = {name: f"searching.{name}" for name in ("live", "spaces", "scoring")}


def main() -> int:
    restart_with_threads(1)
    modules = {name: import_module(module) for name, module in PARTS.items()}
    chosen = chosen_parts(sys.argv[1:], modules) or {name: modules[name] for name in ("live", "scoring")}
    options = options_of(sys.argv[1:], chosen)
    from bench.machine import facts

    results, tables = {"machine": facts()}, []
    for name, module in chosen.items():
        results[name] = module.run(options[name])
        table = getattr(module, "tables", None)
        if table is not None:
            tables.append(table(results[name]))
    common = next(iter(options.values()))
    if common.json:
        common.json.write_text(json.dumps(results, indent=1, default=lambda part: part.to_json()))
    if common.markdown:
        common.markdown.write_text("\n\n".join(tables) + "\n")
    return 0


def chosen_parts(words: Sequence[str], modules: Mapping[str, Any]) -> dict[str, Any]:
    """The parts whose flag stands on the command line."""
    flags = {word.partition("=")[0] for word in words}
    return {name: module for name, module in modules.items() if f"--{name}" in flags}


def options_of(words: Sequence[str], parts: Mapping[str, Any]) -> dict[str, argparse.Namespace]:
    """What the command line says to each part. Parts share the names of options, not their defaults; a word
    that none of them knows is an error."""
    options, strange = {}, []
    for name, module in parts.items():
        parser = argparse.ArgumentParser(
            description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--live", action="store_true", help="searches on this machine")
        parser.add_argument("--scoring", action="store_true", help="candidates a second")
        if name != "spaces":
            parser.add_argument("--spaces", help="folder of recorded spaces; with --help: its options")
        parser.add_argument("--json", type=Path, help="write the results to this file")
        parser.add_argument("--markdown", type=Path, help="write the tables to this file")
        module.add_arguments(parser)
        options[name], unknown = parser.parse_known_args(words)
        strange.append(set(unknown))
    if left := set.intersection(*strange):
        parser.error(f"no option of {' or '.join(parts)}: {' '.join(sorted(left))}")
    return options


if __name__ == "__main__":
    sys.exit(main())
