"""From a scheduled program to the loop nest that code is generated from: pure passes in one printed
pipeline.
"""

from .base import Pass
from .pipeline import Pipeline, lowering

__all__ = ["Pass", "Pipeline", "lowering"]
