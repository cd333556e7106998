"""One search of TVM's MetaSchedule in a process of its own, to be set beside `one_search`.

Takes a JSON object as its only argument (workload, trials, seed, folder, mcpu, processors) and prints whether
there were records in the end.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    given = json.loads(sys.argv[1])
    os.sched_setaffinity(0, given["processors"])
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from bench.peers_tvm import Tvm
    from bench.workloads import workloads

    (w,) = workloads(("w",), (given["workload"],))
    tvm = Tvm(Path(given["folder"]), given["trials"], 1, given["mcpu"], given["seed"])
    print(json.dumps({"found": tvm.search(w)}))


if __name__ == "__main__":
    main()
