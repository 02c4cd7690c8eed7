# SPDX-License-Identifier: Apache-2.0
"""The shapes of the side-by-side run on a GPU and their tensors, shared by every library.

Real request lengths come from data/decode_batches.json. Caches are copied until they exceed four
times the second-level cache, and launches rotate over the copies.
"""
import math
from dataclasses import dataclass

import torch

from peer_common import LENGTHS

PAGE = 64  # the size that every paged peer takes


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    q_heads: int
    kv_heads: int
    head_dim: int
    lengths: list
    q_len: int = 1
    kv_dtype: str = "bfloat16"

    @property
    def uniform(self):
        return len(set(self.lengths)) == 1

    @property
    def kv_bytes(self):
        """Bytes of live keys and values."""
        size = getattr(torch, self.kv_dtype).itemsize
        return sum(self.lengths) * 2 * self.kv_heads * self.head_dim * size


def _steady(batch, keys, q_heads, kv_heads, head_dim=128, q_len=1, kv_dtype="bfloat16"):
    name = f"{batch} x {keys}, {q_heads}:{kv_heads}, hd {head_dim}"
    name += f", q_len {q_len}" if q_len > 1 else ""
    name += ", e4m3" if kv_dtype != "bfloat16" else ""
    return Case(name, q_heads, kv_heads, head_dim, [keys] * batch, q_len, kv_dtype)


def _real(name, q_heads=32, kv_heads=8):
    return Case(f"{name}, {q_heads}:{kv_heads}, hd 128", q_heads, kv_heads, 128, LENGTHS[name])


CASES = [
    *(_steady(1, keys, 32, 8) for keys in (1024, 4096, 16384, 32768)),
    _steady(8, 1024, 32, 8),
    _steady(8, 32768, 32, 8),
    _steady(64, 8192, 64, 8),
    _steady(8, 131072, 16, 1),
    _steady(8, 32768, 64, 8, head_dim=64),
    _steady(16, 8192, 32, 32),
    _steady(8, 32768, 32, 8, q_len=4),
    _real("azure_conversation/b64/s10903"),
    _real("azure_code/b64/s1882"),
    _real("mooncake_conversation/b64/s32460"),
    _real("mooncake_synthetic/b64/s4973"),
    _steady(1, 16384, 32, 8, kv_dtype="float8_e4m3fn"),
    _steady(8, 32768, 32, 8, kv_dtype="float8_e4m3fn"),
    _steady(128, 2048, 64, 8, kv_dtype="float8_e4m3fn"),
]


class Tensors:
    """Queries and `copies` paged caches of a case on the GPU, and a padded contiguous form of them.

    pools: [copy](k, v) of (pages, slot, KV heads, d), page ids shuffled; table (batch, columns).
    rows: [copy](k, v) of (batch, KV heads, longest, d): the same keys.
    """

    def __init__(self, case):
        self.case = case
        self.device = torch.device("cuda")
        generator = torch.Generator(self.device).manual_seed(7)
        draw = dict(generator=generator, device=self.device)
        batch, self.longest = len(case.lengths), max(case.lengths)
        # A factor of 3 makes softmax prefer some keys, so that a wrong read shows in the output.
        shape = (batch, case.q_len, case.q_heads, case.head_dim)
        self.q = (3 * torch.randn(shape, **draw)).to(torch.bfloat16)
        self.kv_len = torch.tensor(case.lengths, dtype=torch.int32, device=self.device)
        l2 = torch.cuda.get_device_properties(self.device).L2_cache_size
        self.copies = max(1, math.ceil(4 * l2 / case.kv_bytes))
        pages = [math.ceil(n / PAGE) for n in case.lengths]
        self.columns = max(pages)
        ids = torch.randperm(sum(pages), **draw).to(torch.int32)
        self.table = torch.zeros(batch, self.columns, dtype=torch.int32, device=self.device)
        starts = [sum(pages[:b]) for b in range(batch)]
        for b, (start, count) in enumerate(zip(starts, pages)):
            self.table[b, :count] = ids[start:start + count]
        self.indices = ids
        self.indptr = torch.tensor(starts + [sum(pages)], dtype=torch.int32, device=self.device)
        self.last_page_len = (self.kv_len - 1) % PAGE + 1
        pool = (sum(pages), PAGE, case.kv_heads, case.head_dim)
        self.pools = [tuple(torch.randn(pool, dtype=torch.bfloat16, **draw)
                            .to(getattr(torch, case.kv_dtype)) for _ in range(2))
                      for _ in range(self.copies)]
        self._rows = None

    @property
    def rows(self):
        if self._rows is None:
            self._rows = [tuple(self._contiguous(pool) for pool in pair) for pair in self.pools]
        return self._rows

    def _contiguous(self, pool):
        case = self.case
        shape = (len(case.lengths), case.kv_heads, self.columns * PAGE, case.head_dim)
        rows = torch.empty(shape, dtype=pool.dtype, device=self.device)
        for b in range(len(case.lengths)):
            keys = pool[self.table[b].long()].flatten(0, 1)
            rows[b] = keys.transpose(0, 1)
        return rows[:, :, :self.longest]

    def expected(self, copy=0):
        """fp32 attention of the first and last request, the judge: (2, q_len, q heads, d)."""
        case, results = self.case, []
        for b in (0, len(case.lengths) - 1):
            n = case.lengths[b]
            count = math.ceil(n / PAGE)
            k, v = (pool[self.table[b, :count].long()].flatten(0, 1)[:n].float()
                    for pool in self.pools[copy])
            group = case.q_heads // case.kv_heads
            q = self.q[b].float().reshape(case.q_len, case.kv_heads, group, case.head_dim)
            scores = torch.einsum("qhgd,khd->hgqk", q, k) / math.sqrt(case.head_dim)
            limit = n - case.q_len + torch.arange(case.q_len, device=self.device)
            hidden = torch.arange(n, device=self.device)[None] > limit[:, None]
            weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
            results.append(torch.einsum("hgqk,khd->qhgd", weights, v).flatten(1, 2))
        return torch.stack(results)
