"""Files that are no modules, are damaged, or hold code for another machine."""

from pathlib import Path

import numpy as np
import pytest
from saved_kernels import pair, product, refusal

import tilewright
from tilewright.compiler.runtime.archive import pack, unpack
from tilewright.compiler.runtime.metadata import seal


# ---- files that are refused ----
@pytest.mark.parametrize(
    "content",
    [b"", b"not a module\n" * 100, b"\x7fELF\x02\x01\x01" + bytes(500), b"!<arch>\n"],
    ids=["empty", "text", "elf", "archive"],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.o"
    path.write_bytes(content)
    assert refusal(path) == "is no module that Tilewright exported"


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tilewright.load_module(tmp_path / "nothing.o")


@pytest.mark.parametrize("part", range(1, 12))
def test_a_file_that_is_cut_off_is_refused(exported: Path, tmp_path: Path, part: int) -> None:
    whole = exported.read_bytes()
    path = tmp_path / f"cut{exported.suffix}"
    path.write_bytes(whole[: len(whole) * part // 12])
    assert refusal(path) in (
        "is no module that Tilewright exported",
        "is cut off",
        "is damaged, or was changed after it was exported",
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_file_with_another_bit_is_refused(exported: Path, tmp_path: Path, seed: int) -> None:
    damaged = bytearray(exported.read_bytes())
    rng = np.random.default_rng(seed)
    damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
    path = tmp_path / f"damaged{exported.suffix}"
    path.write_bytes(damaged)
    assert refusal(path) in (
        "is no module that Tilewright exported",
        "is damaged, or was changed after it was exported",
    )


def test_a_file_with_something_behind_it_is_refused(exported: Path, tmp_path: Path) -> None:
    path = tmp_path / f"longer{exported.suffix}"
    path.write_bytes(exported.read_bytes() + b"\n")
    assert refusal(path) == "is damaged, or was changed after it was exported"


def test_several_modules_in_one_file_are_refused(exported: Path, tmp_path: Path) -> None:
    path = tmp_path / "both.a"
    path.write_bytes(exported.read_bytes() * 2)
    assert refusal(path) == "holds several modules, linked together; load the files they were exported to"


def resealed(path: Path, old: bytes, new: bytes) -> None:
    """Other metadata of the same length, as another version of the exporter would have sealed them."""
    file = path.read_bytes()
    assert len(old) == len(new) and file.count(old) == 1
    path.write_bytes(seal(file.replace(old, new)))


def test_another_format_is_refused_naming_both(tmp_path: Path) -> None:
    path = tilewright.build(product()).export(tmp_path / "k.o")
    resealed(path, b'{"format":1,', b'{"format":7,')
    assert refusal(path) == "has format 7; this version reads the formats 1 and 2"


def test_metadata_without_a_field_are_refused(tmp_path: Path) -> None:
    path = tilewright.build(product()).export(tmp_path / "k.o")
    resealed(path, b'"symbol":', b'"symbal":')
    assert refusal(path) == "has incomplete metadata: 'symbol'"


def test_metadata_that_name_another_function_are_refused(tmp_path: Path) -> None:
    path = tilewright.build(product()).export(tmp_path / "k.o")
    resealed(path, b'"symbol":"product"', b'"symbol":"prodoct"')
    assert "prodoct" in refusal(path)


def test_code_for_features_that_the_machine_lacks_is_refused(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilewright.compiler.target.cpus import CPUS

    monkeypatch.setattr("tilewright.compiler.target.runs.host_cpu", lambda: CPUS["x86-64"])
    target = pair().target
    if target.architecture == "x86_64" and "avx" in target.features:
        problem = refusal(exported)
        assert problem.startswith(f"code for {target.mcpu} cannot run on this machine, which lacks avx")


# ---- archives ----
def test_an_archive_gives_its_members_back() -> None:
    objects = [("one.o", b"abc", ["f"]), ("two.o", b"defg", ["g", "h"]), ("three.o", b"", [])]
    assert unpack(pack(objects)) == [b"abc", b"defg", b""]


@pytest.mark.parametrize(
    ("archive", "problem"),
    [
        (b"\x7fELF", "not an archive"),
        (pack([("one.o", b"abcdef", ["f"])])[:-1], "the member at byte 78 is cut off"),
        (pack([]) + b"rubbish", "no member begins at byte 72"),
    ],
)
def test_a_broken_archive_is_refused(archive: bytes, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        unpack(archive)
    assert str(caught.value) == problem
