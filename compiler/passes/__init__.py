"""From a scheduled program to the loop nest that code is generated from: pure passes in one printed
pipeline.
"""

from .base import Pass
from .pipeline import Pipeline, lowering
from .split_ahead import split_ahead

__all__ = ["Pass", "Pipeline", "lowering", "split_ahead"]
