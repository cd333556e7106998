"""Reads and writes of buffers: scalars, vectors, broadcasts, gathers, scatters, masked where they must be."""

from __future__ import annotations

from ...arith import Poly
from ...ir import Block, Buffer, DType, Load
from ..errors import BuildError
from .addresses import Access, Addresses
from .builder import Builder
from .conditions import Condition, Conditions, Value, only_lane
from .dtypes import bits_of, literal, suffix, value_type, vector_type, zero_in_memory
from .indices import Index, Indices
from .narrow import Narrow
from .point import Point
from .registers import Registers

Conjunction = tuple[Poly, ...]

#: Lanes up to this many elements apart are read as whole vectors: cheaper than a gather of each.
MAX_STRIDE = 4


class Memory:
    """Loads and stores at a point of the loops."""

    def __init__(
        self,
        builder: Builder,
        point: Point,
        indices: Indices,
        conditions: Conditions,
        addresses: Addresses,
        has_half: bool,
    ) -> None:
        self._b = builder
        self._point = point
        self._indices = indices
        self._conditions = conditions
        self._at = addresses
        self.registers = Registers(builder)
        #: Conditions around the expression that is being emitted: outside of them it must not read.
        self.reading: Conjunction = ()
        #: Which instances of the block that is being emitted exist.
        self.existing: Conjunction = ()
        self._stores: dict[Buffer, int] = {}
        self._has_half = has_half
        self._narrows: dict[int | None, Narrow] = {}

    def load(self, x: Load) -> Value:
        """The element, or one for each lane. What comes back where `reading` does not hold means nothing."""
        return self._load(x, zero=False)

    def load_or_zero(self, x: Load) -> Value:
        """The element, or 0 where `reading` does not hold."""
        return self._load(x, zero=True)

    def load_bits(self, x: Load, *, zero: bool) -> Value:
        """The element as it stands in memory, of a buffer that is none of registers; `zero`: 0 where
        `reading` does not hold.
        """
        return self._load_memory(x, zero, bits=True)

    def narrow(self, is_vector: bool) -> Narrow:
        """The conversions of float16 and bfloat16."""
        lanes = self._point.lanes if is_vector else None
        narrow = self._narrows.get(lanes)
        if narrow is None:
            put = self._b.shared if is_vector else self._b.hoisted
            narrow = self._narrows[lanes] = Narrow(put, lanes, has_half=self._has_half)
        return narrow

    def store(self, b: Block, value: Value, dtype: DType, where: Condition) -> None:
        """Writes the block's element, or one for each lane, where the condition holds."""
        self.store_bits(b, self.to_memory(value, dtype), where)

    def store_bits(self, b: Block, value: Value, where: Condition) -> None:
        """Writes the block's element, given as it stands in memory."""
        access = self._at.access(id(b), b.buffer, b.indices, ())
        index = self._indices.at(access.flat)
        self.wrote(b.buffer)
        lanes = self._point.lanes
        if lanes is None:
            self._store_scalar(b.buffer, access, index, value[0], where)
            return
        if not index.stride and not index.lane_terms:
            raise BuildError(f"block {b.name!r} would store all lanes to one element of {b.buffer.name}")
        text = self.wide(value, access.element)
        kind, bits = vector_type(access.element, lanes), vector_type("i1", lanes)
        name = suffix(access.element, lanes)
        if index.stride != 1 or index.lane_terms:
            pointers, f = self._at.lanes(b.buffer, access, index), f"@llvm.masked.scatter.{name}.v{lanes}p0"
            self._b.declare("void", f, kind, vector_type("ptr", lanes), "i32 immarg", bits)
            to = f"{vector_type('ptr', lanes)} {pointers}, i32 {access.align}"
            self._b.statement(f"call void {f}({kind} {text}, {to}, {bits} {self._conditions.mask(where)})")
            return
        self.store_vector(b.buffer, access, index, text, where, access.element)

    def store_vector(
        self, buffer: Buffer, a: Access, index: Index, text: str, where: Condition, element: str
    ) -> None:
        """Neighbours in memory, each as wide as `element`."""
        lanes = self._point.lanes
        kind, bits = vector_type(element, lanes), vector_type("i1", lanes)
        p = self._at.pointer(buffer, a, index.terms, index.constant)
        if where is True:
            self._b.statement(f"store {kind} {text}, ptr {p}, align {a.align}")
            return
        only = only_lane(where) if element[0] == "i" else None
        if only is not None:
            # LLVM 22 stores the lane as wide as it was before a truncation, over what lies behind.
            one = self._b.shared(f"extractelement {kind} {text}, i64 {only}")
            p = self._b.pure(f"getelementptr {element}, ptr {{}}, i64 {{}}", p, only) if only else p
            self._b.statement(f"store {element} {one}, ptr {p}, align {a.align}")
            return
        p = self._at.mapped(buffer, p, self._conditions.needed(where))
        f = f"@llvm.masked.store.{suffix(element, lanes)}.p0"
        self._b.declare("void", f, kind, "ptr", "i32 immarg", bits)
        mask = self._conditions.mask(where)
        self._b.statement(f"call void {f}({kind} {text}, ptr {p}, i32 {a.align}, {bits} {mask})")

    def place(self, b: Block | Load, buffer: Buffer, indices: Conjunction) -> tuple[int, int]:
        """(element, stride of the lanes) of a register buffer. Raises BuildError where the index varies."""
        index = self._indices.at(self._at.access(id(b), buffer, indices, ()).flat)
        if index.terms or index.lane_terms:
            varying = Poly({**index.terms, **index.lane_terms})
            raise BuildError(f"register buffer {buffer.name} has the variable index {varying!r}")
        return index.constant, index.stride

    def wide(self, v: Value, element: str) -> str:
        """The value in every lane, inside of a vector loop; as it is outside."""
        text, is_vector = v
        if is_vector or self._point.lanes is None:
            return text
        return f"splat ({element} {text})" if text[0] != "%" else self._indices.spread(text, element)

    def version(self, buffer: Buffer) -> int:
        """Another one after each write: what was read before counts no more."""
        return self._stores.get(buffer, 0)

    def wrote(self, buffer: Buffer) -> None:
        """Counts a write."""
        self._stores[buffer] = self.version(buffer) + 1

    # ---- reading ----
    def _load(self, x: Load, zero: bool) -> Value:
        buffer = x.buffer
        if buffer.scope == "register":
            element, stride = self.place(x, buffer, x.indices)
            lanes = self._point.lanes
            v = self.registers.read(buffer, element, stride, lanes, self._some_lanes_lack, self._first_lanes)
            return self._zero_of(v, buffer.dtype) if zero else v
        # Everything below depends on the node, the conditions around it, the unrolled loops and the scope.
        point, reading = self._point, self.reading
        at: tuple[object, ...] = (id(x), zero, self.version(buffer), point.unrolled_at(x.indices))
        if reading:
            at = (*at, reading, point.unrolled_at(reading))
        seen = self._b.scope.loads
        value = seen.get(at)
        if value is None:
            value = seen[at] = self._load_memory(x, zero)
        return value

    def _load_memory(self, x: Load, zero: bool, bits: bool = False) -> Value:
        buffer, reading = x.buffer, self.reading
        access = self._at.access(id(x), buffer, x.indices, reading)
        index = self._indices.at(access.flat)
        moves = bool(index.stride or index.lane_terms)
        if not moves and reading and self._point.lane is not None:
            # One element for all lanes: a condition on lanes cannot decide whether its address is inside.
            reading = tuple(p for p in reading if not self._conditions.moves_with_lane(p))
        inside = self._conditions.all_of(access.guards) if access.guards else True
        read = self._conditions.both(self._conditions.all_of(reading), inside) if reading else inside
        # One address may be read under different conditions, so these belong to what names the value.
        key = (
            buffer, self.version(buffer), frozenset(index.terms.items()), index.constant, index.stride,
            frozenset(index.lane_terms.items()), self._point.lanes if moves else None, read,
        )  # fmt: skip
        known = self._b.scope.loads.get(key)
        if known is None:
            known = self._b.scope.loads[key] = (
                self._load_scalar(buffer, access, index, read)
                if not moves
                else self._load_lanes(buffer, access, index, read)
            )
        if bits:
            return self._zero_outside(known, access.element, "0") if zero and not moves else known
        known = self._from_memory(known, buffer.dtype)
        return self._zero_of(known, buffer.dtype) if zero and not moves else known

    def _some_lanes_lack(self) -> bool:
        return any(self._conditions.moves_with_lane(p) for p in self.existing)

    def _first_lanes(self) -> int:
        """Behind so many lanes the block has no instances: what predicates say of the lane alone."""
        count = self._point.lanes or 1
        for p in self.existing:
            index = self._indices.at(p)
            if index.stride > 0 and not (index.terms or index.lane_terms):
                count = min(count, max(0, -(index.constant // index.stride)))
        return count

    def _zero_of(self, v: Value, dtype: DType) -> Value:
        return self._zero_outside(v, value_type(dtype), literal(0, dtype))

    def _zero_outside(self, v: Value, kind: str, zero: str) -> Value:
        c = self._conditions.all_of(self.reading)
        if c is True:
            return v
        if c is False:
            return zero, False
        assert not isinstance(c, bool)
        if not (c[1] or v[1]):
            return self._b.shared(f"select i1 {c[0]}, {kind} {v[0]}, {kind} {zero}"), False
        bits, wide = (
            vector_type("i1", self._point.lanes if c[1] else None),
            vector_type(kind, self._point.lanes),
        )
        text = f"select {bits} {c[0]}, {wide} {self.wide(v, kind)}, {wide} zeroinitializer"
        return self._b.shared(text), True

    def _load_scalar(self, buffer: Buffer, a: Access, index: Index, read: Condition) -> Value:
        if read is False:
            return zero_in_memory(buffer.dtype), False
        p = self._at.scalar(buffer, a, index, read)
        return self._b.put(f"load {a.element}, ptr {p}, align {a.align}"), False

    def _load_lanes(self, buffer: Buffer, a: Access, index: Index, read: Condition) -> Value:
        if read is False:
            return "zeroinitializer", True
        if index.stride == 1 and not index.lane_terms:
            return self.load_vector(buffer, a, index, read, a.element), True
        near = 1 < index.stride <= min(MAX_STRIDE, self._point.lanes or 1)
        if near and not index.lane_terms:
            return self._load_strided(buffer, a, index, self._point.lanes or 1, read), True
        return self.gather(buffer, a, index, read, a.element), True

    def gather(self, buffer: Buffer, a: Access, index: Index, read: Condition, element: str) -> str:
        """For each lane what stands at a place of its own, as wide as `element`."""
        lanes = self._point.lanes
        kind, bits, name = vector_type(element, lanes), vector_type("i1", lanes), suffix(element, lanes)
        pointers, f = self._at.lanes(buffer, a, index), f"@llvm.masked.gather.{name}.v{lanes}p0"
        self._b.declare(kind, f, vector_type("ptr", lanes), "i32 immarg", bits, kind)
        mask = f"{bits} {self._conditions.mask(read)}, {kind} zeroinitializer"
        return self._b.put(f"call {kind} {f}({vector_type('ptr', lanes)} {pointers}, i32 {a.align}, {mask})")

    def load_vector(self, buffer: Buffer, a: Access, index: Index, read: Condition, element: str) -> str:
        """Neighbours in memory, each as wide as `element`."""
        lanes = self._point.lanes
        kind = vector_type(element, lanes)
        p = self._at.pointer(buffer, a, index.terms, index.constant)
        if read is True:
            return self._b.put(f"load {kind}, ptr {p}, align {a.align}")
        return self._load_masked(buffer, a, p, read, self._conditions.mask(read), element)

    def _load_masked(
        self, buffer: Buffer, a: Access, p: str, read: Condition, mask: str, element: str | None = None
    ) -> str:
        """The neighbours of the mask, which has no bit where `read` holds for no lane."""
        lanes, element = self._point.lanes, element or a.element
        kind, bits = vector_type(element, lanes), vector_type("i1", lanes)
        p = self._at.mapped(buffer, p, self._conditions.needed(read))
        f = f"@llvm.masked.load.{suffix(element, lanes)}.p0"
        self._b.declare(kind, f, "ptr", "i32 immarg", bits, kind)
        operands = f"ptr {p}, i32 {a.align}, {bits} {mask}, {kind} zeroinitializer"
        return self._b.put(f"call {kind} {f}({operands})")

    def _apart(self, read: Condition, stride: int, at: int) -> str:
        """The mask of neighbours from the element `at` on, of which every stride-th, counted from the first
        lane's, is a lane's: that lane's bit, none for those between."""
        lanes, mask = self._point.lanes or 1, self._conditions.mask(read)
        places = [divmod(at + r, stride) for r in range(lanes)]
        if mask[0] == "<":
            bits = mask[1:-1].split(", ")
            return "<" + ", ".join("i1 false" if rest else bits[lane] for lane, rest in places) + ">"
        order = ", ".join(f"i32 {lanes if rest else lane}" for lane, rest in places)
        kind = vector_type("i1", lanes)
        return self._b.pure(
            f"shufflevector {kind} {{}}, {kind} zeroinitializer, {vector_type('i32', lanes)} <{order}>", mask
        )

    def _load_strided(self, buffer: Buffer, a: Access, index: Index, lanes: int, read: Condition) -> str:
        """Every stride-th element of as many whole vectors. The last of them ends where the last lane lies:
        nothing beyond is read, nor what lies between lanes where some are not to be read."""
        kind, stride = vector_type(a.element, lanes), index.stride
        value = "poison"
        for n in range(stride):
            at = lanes * n if n < stride - 1 else stride * (lanes - 1) + 1 - lanes
            p = self._at.pointer(buffer, a, index.terms, index.constant + at)
            if read is True:
                part = self._b.put(f"load {kind}, ptr {p}, align {a.align}")
            else:
                part = self._load_masked(buffer, a, p, read, self._apart(read, stride, at))
            if not n:
                value, end = part, lanes
                continue
            chosen = []
            for lane in range(lanes):
                element = stride * lane
                taken = lane if n > 1 else min(element, lanes - 1)
                chosen.append(taken if element < end else lanes + min(max(element - at, 0), lanes - 1))
            end = at + lanes
            mask = ", ".join(f"i32 {c}" for c in chosen)
            value = self._b.put(f"shufflevector {kind} {value}, {kind} {part}, <{lanes} x i32> <{mask}>")
        return value

    # ---- writing ----
    def _store_scalar(self, buffer: Buffer, a: Access, index: Index, text: str, where: Condition) -> None:
        p = self._at.pointer(buffer, a, index.terms, index.constant)
        if where is True:
            self._b.statement(f"store {a.element} {text}, ptr {p}, align {a.align}")
            return
        assert not isinstance(where, bool)
        f = f"@llvm.masked.store.{suffix(a.element, 1)}.p0"
        kind = vector_type(a.element, 1)
        self._b.declare("void", f, kind, "ptr", "i32 immarg", "<1 x i1>")
        value = self._b.shared(f"insertelement {kind} poison, {a.element} {text}, i64 0")
        mask = self._b.pure("insertelement <1 x i1> poison, i1 {}, i64 0", where[0])
        self._b.statement(f"call void {f}({kind} {value}, ptr {p}, i32 {a.align}, <1 x i1> {mask})")

    # ---- as it stands in memory ----
    def to_memory(self, v: Value, dtype: DType) -> Value:
        """A value as it stands in memory: a bool is a byte, a float16 or bfloat16 its 16 bits."""
        text, is_vector = v
        if dtype.is_narrow:
            if text[0] == "%":
                return self.narrow(is_vector).pack(text, dtype), is_vector
            return bits_of(text, dtype), False
        if not dtype.is_bool:
            return v
        if text in ("true", "false"):
            return str(int(text == "true")), False
        lanes = self._point.lanes if is_vector else None
        return self._b.shared(
            f"zext {vector_type('i1', lanes)} {text} to {vector_type('i8', lanes)}"
        ), is_vector

    def _from_memory(self, v: Value, dtype: DType) -> Value:
        text, is_vector = v
        if text[0] != "%":  # nothing was read
            return (text if is_vector else literal(0, dtype)), is_vector
        if dtype.is_narrow:
            return self.narrow(is_vector).unpack(text, dtype), is_vector
        if not dtype.is_bool:
            return v
        kind = vector_type("i8", self._point.lanes if is_vector else None)
        return self._b.shared(f"icmp ne {kind} {text}, {'zeroinitializer' if is_vector else '0'}"), is_vector
