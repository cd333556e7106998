"""Processors by LLVM's names: their features and caches.

The table stands in for asking the machine: a kernel for a processor can be described, keyed and compiled to
an object on any machine. Features: LLVM's processor definitions. Caches: makers' data sheets, one core's
L1d and L2 and the L3 that one core can fill; a part with several sizes is given its commonest.
"""

from dataclasses import dataclass

from .features import with_needs

KIB = 1 << 10
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Cpu:
    """A processor: its features that change code, and its cache sizes in bytes (0: no such cache)."""

    name: str
    architecture: str
    features: frozenset[str]
    l1d: int
    l2: int
    l3: int


_V2 = "sse4.2 popcnt"
_V3 = f"{_V2} avx2 bmi bmi2 f16c fma lzcnt movbe"
_V4 = f"{_V3} avx512f avx512cd avx512dq avx512bw avx512vl"
_ICELAKE = f"{_V4} avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq gfni"
_SAPPHIRE = f"{_ICELAKE} avx512bf16 avx512fp16 avxvnni amx-tile amx-int8 amx-bf16"
_ALDER = f"{_V3} avxvnni gfni"
_SIERRA = f"{_ALDER} avxifma avxneconvert avxvnniint8"
_ZEN4 = f"{_ICELAKE} avx512bf16"

# names | features | L1d KiB, L2 KiB, L3 KiB
_X86: tuple[tuple[str, str, tuple[int, int, int]], ...] = (
    ("x86-64", "sse2", (32, 256, 4096)),
    ("x86-64-v2", _V2, (32, 256, 4096)),
    ("x86-64-v3", _V3, (32, 256, 8192)),
    ("x86-64-v4", _V4, (32, 1024, 16384)),
    ("core2", "ssse3", (32, 4096, 0)),
    ("penryn", "sse4.1", (32, 6144, 0)),
    ("nehalem westmere", _V2, (32, 256, 8192)),
    ("sandybridge", f"{_V2} avx", (32, 256, 8192)),
    ("ivybridge", f"{_V2} avx f16c", (32, 256, 8192)),
    ("haswell broadwell skylake", _V3, (32, 256, 8192)),
    ("skylake-avx512", _V4, (32, 1024, 16384)),
    ("cascadelake", f"{_V4} avx512vnni", (32, 1024, 16384)),
    ("cooperlake", f"{_V4} avx512vnni avx512bf16", (32, 1024, 16384)),
    ("cannonlake", f"{_V4} avx512ifma avx512vbmi", (32, 256, 4096)),
    ("icelake-client rocketlake", _ICELAKE, (48, 512, 8192)),
    ("icelake-server", _ICELAKE, (48, 1280, 32768)),
    ("tigerlake", f"{_ICELAKE} avx512vp2intersect", (48, 1280, 12288)),
    ("sapphirerapids emeraldrapids", _SAPPHIRE, (48, 2048, 65536)),
    ("graniterapids graniterapids-d", f"{_SAPPHIRE} amx-fp16", (48, 2048, 65536)),
    ("alderlake", _ALDER, (48, 1280, 25600)),
    ("raptorlake meteorlake", _ALDER, (48, 2048, 25600)),
    ("arrowlake", _SIERRA, (48, 3072, 24576)),
    ("arrowlake-s lunarlake pantherlake", f"{_SIERRA} avxvnniint16", (48, 2560, 12288)),
    ("gracemont", _ALDER, (32, 2048, 6144)),
    ("sierraforest grandridge", _SIERRA, (32, 4096, 65536)),
    ("clearwaterforest", f"{_SIERRA} avxvnniint16", (32, 4096, 65536)),
    ("silvermont goldmont", f"{_V2} movbe", (24, 1024, 0)),
    ("goldmont-plus", f"{_V2} movbe", (24, 4096, 0)),
    ("tremont", f"{_V2} movbe gfni", (32, 1536, 4096)),
    ("knl", f"{_V3} avx512f avx512cd", (32, 512, 0)),
    ("knm", f"{_V3} avx512f avx512cd avx512vpopcntdq", (32, 512, 0)),
    ("amdfam10", "sse3 popcnt lzcnt", (64, 512, 6144)),
    ("btver1", "ssse3 popcnt lzcnt", (32, 512, 0)),
    ("btver2", f"{_V2} avx bmi f16c lzcnt movbe", (32, 2048, 0)),
    ("bdver1", f"{_V2} avx lzcnt", (16, 2048, 8192)),
    ("bdver2 bdver3", f"{_V2} avx bmi f16c fma lzcnt", (16, 2048, 8192)),
    ("bdver4", f"{_V2} avx2 bmi bmi2 f16c fma lzcnt movbe", (32, 1024, 0)),
    ("znver1", _V3, (32, 512, 8192)),
    ("znver2", _V3, (32, 512, 16384)),
    ("znver3", _V3, (32, 512, 32768)),
    ("znver4", _ZEN4, (32, 1024, 32768)),
    ("znver5", f"{_ZEN4} avxvnni avx512vp2intersect", (48, 1024, 32768)),
)
_ARM82 = "neon fullfp16 dotprod"
_ARM86 = f"{_ARM82} bf16 i8mm"
_AARCH64: tuple[tuple[str, str, tuple[int, int, int]], ...] = (
    ("cortex-a53", "neon", (32, 512, 0)),
    ("cortex-a57", "neon", (32, 2048, 0)),
    ("cortex-a72 cortex-a73", "neon", (32, 1024, 0)),
    ("cortex-a55", _ARM82, (32, 128, 1024)),
    ("cortex-a75 cortex-a76 cortex-a77", _ARM82, (64, 512, 4096)),
    ("cortex-a78 cortex-x1", _ARM82, (64, 512, 8192)),
    ("cortex-a710 cortex-x2", f"{_ARM86} sve2", (64, 512, 8192)),
    ("neoverse-n1", _ARM82, (64, 1024, 32768)),
    ("neoverse-n2", f"{_ARM86} sve2", (64, 1024, 32768)),
    ("neoverse-v1", f"{_ARM86} sve", (64, 1024, 32768)),
    ("neoverse-v2", f"{_ARM86} sve2", (64, 2048, 65536)),
    ("ampere1 ampere1a", _ARM86, (64, 2048, 32768)),
    ("a64fx", "sve", (64, 8192, 0)),
    ("thunderx2t99", "neon", (32, 256, 32768)),
    ("apple-m1", _ARM82, (128, 12288, 8192)),
    ("apple-m2 apple-m3", _ARM86, (128, 16384, 8192)),
    ("apple-m4", _ARM86, (128, 16384, 8192)),
)
_RV64GC = "m a f d c"
_RVA22 = f"{_RV64GC} zba zbb zbs"
_RISCV64: tuple[tuple[str, str, tuple[int, int, int]], ...] = (
    ("generic-rv64", _RV64GC, (32, 512, 0)),
    ("sifive-u74", _RV64GC, (32, 2048, 0)),
    ("sifive-x280", f"{_RVA22} zvl512b zvfh", (32, 1024, 4096)),
    ("spacemit-x60", f"{_RVA22} zvl256b zvfh", (32, 512, 0)),
)

ALIASES = {
    "corei7": "nehalem",
    "corei7-avx": "sandybridge",
    "core-avx-i": "ivybridge",
    "core-avx2": "haswell",
    "skx": "skylake-avx512",
    "slm": "silvermont",
    "barcelona": "amdfam10",
}
"""Other names that LLVM gives to processors of the table."""


def _table() -> dict[str, Cpu]:
    cpus: dict[str, Cpu] = {}
    for architecture, rows in (("x86_64", _X86), ("aarch64", _AARCH64), ("riscv64", _RISCV64)):
        for names, features, (l1d, l2, l3) in rows:
            closed = with_needs(architecture, features.split())
            for name in names.split():
                cpus[name] = Cpu(name, architecture, closed, l1d * KIB, l2 * KIB, l3 * KIB)
    return cpus


CPUS: dict[str, Cpu] = _table()
"""Every processor that a target may name."""


_GENERAL = {
    "x86_64": ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"),
    "aarch64": ("cortex-a53",),
    "riscv64": ("generic-rv64",),
}


def nearest(architecture: str, features: frozenset[str]) -> Cpu:
    """The general processor of an architecture with the most of these features and no other.

    Stands in for a processor that LLVM knows and the table does not.
    """
    names = _GENERAL[architecture]
    fitting = [CPUS[name] for name in names if CPUS[name].features <= features]
    return fitting[0] if fitting else CPUS[names[-1]]
