"""Distributions with back ends, as if they were installed: the example's, and others that a test makes up."""

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilewright.compiler.runtime.device_api import DeviceAPI, DeviceError, Stream, device_api
from tilewright.compiler.target import registry

sys.path.insert(0, str(Path(__file__).parent))

from device_memory import KINDS
from saved_kernels import SUFFIXES, pair

PLUGIN = Path(__file__).parents[2] / "plugin"


@dataclass(frozen=True)
class Site:
    """A folder that Python searches for modules and distributions."""

    folder: Path

    def install(self, name: str, entry_points: dict[str, str]) -> None:
        """What installing leaves behind for others to find: a distribution's name and its entry points."""
        info = self.folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        lines = "\n".join(f"{kind} = {value}" for kind, value in entry_points.items())
        (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{lines}\n")
        registry.forget()

    def install_example(self) -> None:
        """Installs the example by its own project file; its modules stay where they are."""
        project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
        self.install(project["name"], project["entry-points"][registry.GROUP])

    @property
    def search(self) -> list[str]:
        """The folders to search, as PYTHONPATH lists them."""
        return [str(self.folder), str(PLUGIN)]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty site for this test."""
    folder = tmp_path / "site"
    folder.mkdir()
    loaded = set(sys.modules)
    for path in Site(folder).search:
        monkeypatch.syspath_prepend(path)
    registry.forget()
    yield Site(folder)
    for name in set(sys.modules) - loaded:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    monkeypatch.undo()
    registry.forget()


@pytest.fixture
def pyref(site: Site) -> str:
    """The kind of the example, which is installed."""
    site.install_example()
    return "pyref"


@pytest.fixture(scope="module", params=SUFFIXES)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of each sort."""
    return pair().export(tmp_path_factory.mktemp("exported") / f"kernels{request.param}")


@pytest.fixture(params=KINDS)
def api(request: pytest.FixtureRequest) -> DeviceAPI:
    if request.param != "cpu":
        request.getfixturevalue(request.param)
    return device_api(request.param)


@pytest.fixture
def make_stream(api: DeviceAPI) -> Any:
    made: list[Stream] = []

    def make() -> Stream:
        made.append(api.create_stream(0))
        return made[-1]

    yield make
    for stream in made:
        try:
            api.free_stream(stream)
        except DeviceError:
            continue
