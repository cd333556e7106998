"""The `tilewright` program: the command line, loaded where Ctrl-C is already understood.

Loading it takes most of a second, in which nothing else would catch an interrupt.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Ends the process with the exit code of the command; 130 and one line where it was interrupted."""
    try:
        from .cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("tilewright: interrupted", file=sys.stderr)
        code = _INTERRUPTED
    # What is left takes a moment, and has no use for an interrupt.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if code == _INTERRUPTED:
        # The interpreter may have noted that an interrupt came in code that it made of a text, and would end
        # by the signal whatever became of it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
