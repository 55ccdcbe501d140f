"""onnxruntime's arena for CPU memory, simulated: best fit, splitting, merging of free neighbours, regions that double.

Given the order of allocations and frees, the simulation places every tensor where the real arena does, so it says how much memory the
arena takes: fragmentation and rounding to 256 bytes included.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass

UNIT = 256
"""Every allocation is rounded up to a multiple of this (`kMinAllocationSize`)."""
HANDLE_BYTES = 8
"""The arena keeps one handle for every unit of its regions, used or not."""
LARGEST_BLOCK = 2**31 - UNIT
"""`initial_chunk_size_bytes` is a 32-bit number."""
_APART = 2**50
"""Distance between the simulated addresses of two regions, so that chunks of different regions are never neighbours. Addresses fall from
one region to the next, as the system's do for large ones: of two free chunks of equal size, the one at the lower address is taken."""
_LOWEST = -(2**80)


@dataclass(frozen=True, slots=True)
class ArenaSettings:
    """The fields of onnxruntime's `OrtArenaCfg` that matter here, with its defaults."""

    first_region: int = 2**20
    most_waste: int = 2**27
    """A free chunk is not split if less than this would remain and it is less than twice the request (`max_dead_bytes_per_chunk`)."""
    largest_growth: int = 2**30


def one_block(size: int) -> ArenaSettings:
    """A first region of this size, and every chunk split exactly: several regions could not be merged."""
    return ArenaSettings(first_region=min(rounded(size), LARGEST_BLOCK), most_waste=1)


def rounded(size: int) -> int:
    return -(-size // UNIT) * UNIT


@dataclass(frozen=True, slots=True)
class Event:
    """An allocation of `bytes` or, if None, the end of one."""

    key: int
    """Names the allocation."""
    bytes: int | None


class Arena:
    """The state of an arena."""

    def __init__(self, settings: ArenaSettings) -> None:
        self._settings = settings
        self._growth = rounded(settings.first_region)
        self.regions: list[int] = []
        """The size of each region, in the order in which they were taken from the system."""
        self._touched: list[int] = []
        self._free: list[tuple[int, int]] = []
        """Free chunks by size and address."""
        self._size_at: dict[int, int] = {}
        """The size of each free chunk, by address ..."""
        self._ending_at: dict[int, int] = {}
        """... and its address, by the address after it."""
        self._used: dict[int, tuple[int, int]] = {}
        """Address and size of the chunk of each allocation."""
        self.in_use = 0
        """Bytes of all used chunks."""

    @property
    def reserved_bytes(self) -> int:
        """Bytes of all regions."""
        return sum(self.regions)

    @property
    def touched_bytes(self) -> int:
        """Bytes that were ever used, counted from the start of each region: the system provides no more memory than this."""
        return sum(self._touched)

    def allocate(self, key: int, size: int) -> None:
        if not size:
            return
        wanted = rounded(size)
        place = bisect_left(self._free, (wanted, _LOWEST))
        if place == len(self._free):
            self._extend(wanted)
            place = bisect_left(self._free, (wanted, _LOWEST))
        taken, address = self._free.pop(place)
        del self._size_at[address], self._ending_at[address + taken]
        if taken >= 2 * wanted or taken - wanted >= self._settings.most_waste:
            self._insert(address + wanted, taken - wanted)
            taken = wanted
        self._used[key] = (address, taken)
        self.in_use += taken
        region, offset = divmod(address, _APART)
        self._touched[-region] = max(self._touched[-region], offset + wanted)

    def free(self, key: int) -> None:
        found = self._used.pop(key, None)
        if found is None:
            return
        address, size = found
        self.in_use -= size
        following = self._size_at.get(address + size)
        if following is not None:
            self._remove(address + size, following)
            size += following
        before = self._ending_at.get(address)
        if before is not None:
            self._remove(before, address - before)
            address, size = before, size + address - before
        self._insert(address, size)

    def run(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.bytes is None:
                self.free(event.key)
            else:
                self.allocate(event.key, event.bytes)

    def _extend(self, wanted: int) -> None:
        """Take a region from the system: at least as large as the last one was planned to be, which doubles."""
        enough = wanted <= self._growth
        while wanted > self._growth:
            self._growth *= 2
        size = self._growth
        if enough:
            self._growth = self._growth * 2 if self._growth * 2 < self._settings.largest_growth else self._settings.largest_growth
        self._insert(-len(self.regions) * _APART, size)
        self.regions.append(size)
        self._touched.append(0)

    def _insert(self, address: int, size: int) -> None:
        insort(self._free, (size, address))
        self._size_at[address] = size
        self._ending_at[address + size] = address

    def _remove(self, address: int, size: int) -> None:
        del self._free[bisect_left(self._free, (size, address))]
        del self._size_at[address], self._ending_at[address + size]
