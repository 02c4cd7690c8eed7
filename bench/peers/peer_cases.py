# SPDX-License-Identifier: Apache-2.0
"""The shapes of the side-by-side run and their tensors, shared by every library.

Real request lengths come from data/decode_batches.json (sources and licences inside). Caches
are copied until they exceed four times the last-level cache, and calls rotate over the copies.
"""
import pathlib
from dataclasses import dataclass

import numpy as np
import torch

from peer_common import LENGTHS

_PAGE = 16
_BLOCK = 1 << 20  # elements drawn at random; a cache repeats them, shifted


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    dtype: str
    q_heads: int
    kv_heads: int
    head_dim: int
    lengths: list

    @property
    def kv_bytes(self):
        """Bytes of live keys and values."""
        size = getattr(torch, self.dtype).itemsize
        return sum(self.lengths) * 2 * self.kv_heads * self.head_dim * size


def _steady(name, q_heads, kv_heads, head_dim, batch, keys, dtype="bfloat16"):
    return Case(name, dtype, q_heads, kv_heads, head_dim, [keys] * batch)


CASES = [
    _steady("8 x 8192, 32:8, hd 128", 32, 8, 128, 8, 8192),
    _steady("8 x 8192, 64:8, hd 128", 64, 8, 128, 8, 8192),
    _steady("8 x 8192, 32:8, hd 64", 32, 8, 64, 8, 8192),
    _steady("8 x 8192, 64:8, hd 64", 64, 8, 64, 8, 8192),
    *(Case(f"{name}, 32:8, hd 128", "bfloat16", 32, 8, 128, LENGTHS[name]) for name in (
        "azure_code/b8/s14782", "azure_conversation/b8/s254336", "mooncake_conversation/b8/s86240",
        "mooncake_synthetic/b8/s12686", "mix/1x16384+15x64")),
    _steady("1 x 32768, 32:8, hd 128", 32, 8, 128, 1, 32768),
    _steady("1 x 256, 32:8, hd 128", 32, 8, 128, 1, 256),
    _steady("8 x 2048, 32:32, hd 128", 32, 32, 128, 8, 2048),
    _steady("8 x 4096, 32:8, hd 128, fp32", 32, 8, 128, 8, 4096, "float32"),
]


def last_level_cache():
    """Bytes of the largest cache the kernel reports; 32 MiB where it reports none."""
    sizes = [int(path.read_text().strip()[:-1]) * 1024
             for path in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max(sizes, default=32 << 20)


class Tensors:
    """Queries and `copies` caches of a case, in the layouts that the libraries prefer.

    rows: [copy](k, v) of (batch, longest, KV heads, d), Deuce's contiguous cache.
    heads: the same keys as (batch, KV heads, longest, d), PyTorch's preferred order.
    """

    def __init__(self, case):
        self.case = case
        self.dtype = getattr(torch, case.dtype)
        generator = torch.Generator().manual_seed(7)
        self.block = torch.randn(_BLOCK, generator=generator).to(self.dtype)
        batch = len(case.lengths)
        # A factor of 3 makes softmax prefer some keys, so that a wrong read shows in the output.
        q = 3 * torch.randn(batch, case.q_heads, case.head_dim, generator=generator)
        self.q = q.to(self.dtype)
        self.longest = max(case.lengths)
        self.kv_len = torch.tensor(case.lengths, dtype=torch.int32)
        self.copies = max(1, -(-4 * last_level_cache() // case.kv_bytes))
        self._made = {}

    def _numbers(self, count, shift):
        repeats = -(-(count + shift) // _BLOCK)
        return self.block.repeat(repeats)[shift:shift + count]

    def _once(self, name, make):
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    @property
    def rows(self):
        """Contiguous caches, one row per request, padded to the longest."""
        case = self.case
        shape = (len(case.lengths), self.longest, case.kv_heads, case.head_dim)
        return self._once("rows", lambda: [
            tuple(self._numbers(int(np.prod(shape)), 31 * copy + side * 7919).reshape(shape)
                  for side in range(2)) for copy in range(self.copies)])

    @property
    def heads(self):
        """The same keys head by head."""
        return self._once("heads", lambda: [
            tuple(cache.transpose(1, 2).contiguous() for cache in pair) for pair in self.rows])

    @property
    def expanded(self):
        """heads with each KV head repeated for its group: group times the memory."""
        group = self.case.q_heads // self.case.kv_heads
        return self._once("expanded", lambda: [
            tuple(cache.repeat_interleave(group, dim=1) for cache in pair) for pair in self.heads])

    @property
    def pages(self):
        """[copy](k, v) of shuffled pages, and the block table that all copies share."""
        return self._once("pages", self._make_pages)

    def _make_pages(self):
        columns = -(-self.longest // _PAGE)
        batch = len(self.case.lengths)
        generator = torch.Generator().manual_seed(11)
        live = [-(-length // _PAGE) for length in self.case.lengths]
        order = torch.randperm(sum(live), generator=generator).to(torch.int32)
        table = torch.zeros(batch, columns, dtype=torch.int32)
        shape = (sum(live), _PAGE, self.case.kv_heads, self.case.head_dim)
        pools = [[torch.zeros(shape, dtype=self.dtype) for _ in range(2)]
                 for _ in range(self.copies)]
        at = 0
        for request, count in enumerate(live):
            ids = order[at:at + count]
            table[request, :count] = ids
            at += count
            length = self.case.lengths[request]
            for pool, pair in zip(pools, self.rows):
                for target, cache in zip(pool, pair):
                    filled = torch.zeros(count * _PAGE, *cache.shape[2:], dtype=self.dtype)
                    filled[:length] = cache[request, :length]
                    target[ids.long()] = filled.reshape(count, _PAGE, *cache.shape[2:])
        return pools, table

    @property
    def float_rows(self):
        """Per copy and request (k, v) as fp32 NumPy (KV heads, keys, d)."""
        return self._once("float_rows", lambda: [
            [tuple(cache[b, :, :n].float().numpy() for cache in pair)
             for b, n in enumerate(self.case.lengths)] for pair in self.heads])
