# SPDX-License-Identifier: Apache-2.0
"""Paged KV cache: one pool of pages for all layers and requests, and a page table per request.

Used by model.py (writes), attention.py (reads) and capture.py (saves). Pages are handed out in a
shuffled order, so that nothing works by luck of neighbouring pages, and unused slots hold NaN: an
attention that reads one byte too many shows it in its output.
"""

import numpy as np


def to_bf16(values):
    """float32 -> the bits of bfloat16 as uint16, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    """bfloat16 bits (uint16) -> float32, exact."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


class PagedKvCache:
    """k, v: [layer, page, slot, kv_head, head_dim]; float32, or uint16 holding bfloat16 bits."""

    def __init__(self, config, batch, max_tokens, page_size=16, dtype="bf16", seed=7):
        """batch: requests; max_tokens: of one request; page_size: tokens of a page, >= 1."""
        if dtype not in ("bf16", "f32"):
            raise ValueError(f"dtype is {dtype}; bf16 and f32 are kept")
        self.dtype, self.page_size = dtype, page_size
        self.columns = -(-max_tokens // page_size)
        shape = (config.layers, batch * self.columns, page_size, config.kv_heads, config.head_dim)
        empty = np.float32(np.nan) if dtype == "f32" else np.uint16(0x7FC0)   # NaN either way
        self.k, self.v = np.full(shape, empty), np.full(shape, empty)
        self.kv_len = np.zeros(batch, np.int32)
        self.block_table = np.full((batch, self.columns), -1, np.int32)
        self._free = np.random.default_rng(seed).permutation(shape[1]).astype(np.int32).tolist()

    def encode(self, values):
        """float32 values as the cache stores them."""
        return to_bf16(values) if self.dtype == "bf16" else np.asarray(values, np.float32)

    def decode(self, stored):
        """Stored values as float32."""
        return from_bf16(stored) if self.dtype == "bf16" else stored

    @property
    def bytes_per_token(self):
        """Bytes of K and V of one token in one layer."""
        return 2 * self.k.itemsize * self.k.shape[-1] * self.k.shape[-2]

    def extend(self, request, token_count):
        """Grows a request by `token_count` tokens; returns their slots, page * page_size + slot."""
        first, last = self.kv_len[request], self.kv_len[request] + token_count
        if last > self.columns * self.page_size:
            raise ValueError(f"request {request} would hold {last} tokens; "
                             f"the cache was made for {self.columns * self.page_size}")
        for column in range(-(-first // self.page_size), -(-last // self.page_size)):
            self.block_table[request, column] = self._free.pop()
        self.kv_len[request] = last
        position = np.arange(first, last)
        return self.block_table[request, position // self.page_size] * self.page_size \
            + position % self.page_size

    def write(self, layer, slots, k, v):
        """Stores k, v [token, kv_head, head_dim] (float32) of one layer in the given slots."""
        for pool, values in ((self.k, k), (self.v, v)):
            pool[layer].reshape(-1, *pool.shape[-2:])[slots] = self.encode(values)

    def read(self, layer, request):
        """k, v [kv_len, kv_head, head_dim] of one request, gathered and as float32."""
        length = self.kv_len[request]
        pages = self.block_table[request, :-(-length // self.page_size)]
        return (self.decode(pool[layer, pages].reshape(-1, *pool.shape[-2:])[:length])
                for pool in (self.k, self.v))
