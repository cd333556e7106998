"""What the tests of the tuner share: the folder is put on the path for its synthetic spaces."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
