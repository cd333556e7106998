"""Refuses to build where the links of src/tilewright were lost, instead of building an empty wheel."""

from pathlib import Path

from setuptools import setup

_PARTS = ("compiler", "tuner", "measure", "db", "service")
_lost = [p for p in _PARTS if not (Path(__file__).parent / "src" / "tilewright" / p).is_dir()]
if _lost:
    raise SystemExit(
        f"src/tilewright/{{{','.join(_lost)}}} must be links to the folders of the same name in the root; "
        "this copy lost them (a zip archive, or Windows without symbolic links). Clone with git instead."
    )

setup()
