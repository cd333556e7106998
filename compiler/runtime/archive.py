"""Archives of object files, in the ar format that linkers read, with the symbol table of System V."""

from collections.abc import Sequence

MAGIC = b"!<arch>\n"
_HEAD = 60


def pack(objects: Sequence[tuple[str, bytes, Sequence[str]]]) -> bytes:
    """An archive of objects, each with its name (at most 15 ASCII characters) and the symbols it defines.

    No times and owners are kept, so that the same objects give the same archive.
    """
    symbols = [(name.encode(), n) for n, (_, _, names) in enumerate(objects) for name in names]
    strings = b"".join(name + b"\0" for name, _ in symbols)
    table_size = 4 + 4 * len(symbols) + len(strings)
    place = len(MAGIC) + _HEAD + table_size + table_size % 2
    places = []
    for _, code, _ in objects:
        places.append(place)
        place += _HEAD + len(code) + len(code) % 2
    table = len(symbols).to_bytes(4, "big")
    table += b"".join(places[n].to_bytes(4, "big") for _, n in symbols) + strings
    members = [_member("/", table), *(_member(f"{name}/", code) for name, code, _ in objects)]
    return MAGIC + b"".join(members)


def unpack(archive: bytes) -> list[bytes]:
    """The objects of an archive. Raises ValueError for what is none, or ends too early."""
    if not archive.startswith(MAGIC):
        raise ValueError("not an archive")
    objects = []
    at = len(MAGIC)
    while at < len(archive):
        head = archive[at : at + _HEAD]
        if len(head) < _HEAD or head[58:60] != b"`\n" or not head[48:58].strip().isdigit():
            raise ValueError(f"no member begins at byte {at}")
        size = int(head[48:58])
        start = at + _HEAD
        if start + size > len(archive):
            raise ValueError(f"the member at byte {at} is cut off")
        if not head.startswith((b"/ ", b"// ", b"/SYM64/ ", b"__.SYMDEF")):
            objects.append(archive[start : start + size])
        at = start + size + size % 2
    return objects


def _member(name: str, content: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}`\n".encode("ascii")
    return head + content + b"\n" * (len(content) % 2)
