from __future__ import annotations

from tilewright.compiler.target import detect
from tilewright.measure.messages import WorkerHello
from tilewright.measure.probe import probe


def test_a_worker_says_what_the_compiler_finds() -> None:
    hello, hardware = probe("rpi4-07", {"board": "rpi4"}), detect()
    assert hello.hardware_key == hardware.key
    assert {name: hello.hardware[name] for name in hardware.facts} == hardware.facts


def test_a_worker_keeps_the_name_and_labels_it_is_given() -> None:
    hello = probe("rpi4-07", {"board": "rpi4"})
    assert (hello.name, hello.labels) == ("rpi4-07", {"board": "rpi4"})


def test_a_worker_says_which_versions_made_its_numbers() -> None:
    assert set(probe("w").versions) == {"python", "codegen", "tilewright", "numpy", "llvmlite", "llvm"}


def test_every_probe_is_a_session_of_its_own() -> None:
    assert probe("w").session != probe("w").session


def test_a_hello_is_a_message_that_the_service_can_read() -> None:
    hello = probe("w")
    assert WorkerHello.from_json(hello.to_json()) == hello
