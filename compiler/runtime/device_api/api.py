"""What a device must be able to do, for memory, copies and streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

ALIGNMENT = 64
"""Bytes: what data space and workspaces are aligned to unless more is asked for."""

AttributeValue = int | str | bool | None


class DeviceError(Exception):
    """A device that is not there, or memory or a stream used in a way that it does not allow."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device: the name of its DeviceAPI, and which one of those it is."""

    kind: str
    index: int = 0

    def __str__(self) -> str:
        return f"{self.kind}({self.index})"


@dataclass(slots=True, eq=False)
class Memory:
    """Space on a device. address: as kernels take it. keep: what holds the space, for as long as it is used.

    `owned` is space that the device allocated and can free; the other kind belongs to somebody else, such as
    a NumPy array.
    """

    device: Device
    address: int
    nbytes: int
    keep: object = None
    owned: bool = False
    freed: bool = False

    def __str__(self) -> str:
        return f"{self.nbytes} bytes at {self.address:#x} of {self.device}"


class Stream(Protocol):
    """Work on a device that runs in the order in which it was submitted, beside other streams."""

    @property
    def device(self) -> Device: ...


class DeviceAPI(Protocol):
    """The devices of one kind, counted from 0. Every method raises DeviceError for what does not exist, was
    freed, or lies out of bounds.
    """

    @property
    def name(self) -> str:
        """The kind: what a Device says, and for a plug-in the name of its target kind."""

    @property
    def host_accessible(self) -> bool:
        """Whether this process may read and write the memory at its address, without a copy."""

    def attribute(self, index: int, name: str) -> AttributeValue:
        """A fact about a device, None where it is unknown or has no such fact.

        "exist" (bool), "device_name", "compute_version" (str), "api_version", "max_threads",
        "multi_processor_count", "total_memory", "l1d", "l2", "l3" (bytes). Of a device that does not exist,
        "exist" is False and everything else None.
        """

    def allocate(self, index: int, nbytes: int, alignment: int = ALIGNMENT) -> Memory:
        """Data space, uninitialised. The alignment is a power of two. MemoryError when there is none left."""

    def free(self, memory: Memory) -> None:
        """Give data space back; work that was submitted before may still use it."""

    def allocate_workspace(self, index: int, nbytes: int) -> Memory:
        """Space for a short time, from a pool of the calling thread."""

    def free_workspace(self, memory: Memory) -> None:
        """Give a workspace back to the pool, for the next one who asks in this thread."""

    def release_workspaces(self) -> None:
        """Give back to the system what this thread's pool holds and nobody uses."""

    def copy(
        self,
        source: Memory,
        target: Memory,
        nbytes: int,
        source_offset: int = 0,
        target_offset: int = 0,
        stream: Stream | None = None,
    ) -> None:
        """Copy bytes. One side is of this kind, the other of this kind or the CPU's.

        On `stream`, or the current one, it is submitted and the call returns; without any it is done when
        the call returns.
        """

    def create_stream(self, index: int) -> Stream:
        """A new stream."""

    def free_stream(self, stream: Stream) -> None:
        """Wait for the stream's work and give it back. An error of its work is raised."""

    def set_stream(self, index: int, stream: Stream | None) -> None:
        """Make a stream the current one of a device in the calling thread; None: none, the default."""

    def current_stream(self, index: int) -> Stream | None:
        """The stream that set_stream made current in the calling thread."""

    def submit(self, stream: Stream, work: Callable[[], object]) -> None:
        """Run `work` after everything submitted to the stream before: a kernel bound to its arrays."""

    def synchronize(self, index: int, stream: Stream | None = None) -> None:
        """Wait for a stream's work, or without one for the work of every stream of the device. Raises the
        first error of the work.
        """

    def synchronize_streams(self, before: Stream, after: Stream) -> None:
        """What is submitted to `after` from now on runs after what was submitted to `before` up to now. Does
        not wait itself.
        """


def check_copy(source: Memory, target: Memory, nbytes: int, source_offset: int, target_offset: int) -> None:
    """Raises DeviceError for a copy that leaves one of the two, or touches one that was freed."""
    if nbytes < 0:
        raise DeviceError(f"copy: {nbytes} bytes cannot be copied")
    for word, memory, offset in (("from", source, source_offset), ("to", target, target_offset)):
        if memory.freed:
            raise DeviceError(f"copy: the memory copied {word} was freed: {memory}")
        if offset < 0 or offset + nbytes > memory.nbytes:
            raise DeviceError(
                f"copy: bytes {offset} to {offset + nbytes}, copied {word}, lie outside of {memory}"
            )


def check_request(nbytes: int, alignment: int) -> None:
    """Raises DeviceError for a size or an alignment that no memory has."""
    if nbytes < 0:
        raise DeviceError(f"allocate: {nbytes} bytes cannot be allocated")
    if alignment < 1 or alignment & (alignment - 1):
        raise DeviceError(f"allocate: the alignment must be a power of two, not {alignment}")


def check_free(memory: Memory) -> None:
    """Raises DeviceError for memory that is not to be freed, or not again."""
    if not memory.owned:
        raise DeviceError(f"free: {memory} was not allocated here")
    if memory.freed:
        raise DeviceError(f"free: {memory} was freed already")
