"""The kind of target ``pyref``: the reference interpreter, on a device with memory of its own."""

from tilewright.compiler.target import Attribute, Backend, TargetKind

backend = Backend(
    TargetKind(
        "pyref",
        attributes=(
            Attribute("device", "int", 0),
            Attribute("order", "str", "forward", choices=("forward",)),
            Attribute("steps", "int", 1_000_000, minimum=1),
            Attribute("strict", "bool", False),
        ),
        processor=False,
    ),
    generator="tilewright_pyref.generator:generator",
    device="tilewright_pyref.device:api",
)
