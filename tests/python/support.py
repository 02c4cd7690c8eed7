# SPDX-License-Identifier: Apache-2.0
"""Shared by the Python tests: attention in double precision by its definition, and small problems.

attend() is written from the semantics table (docs), not from the library; it must stay that way,
for it judges the entry points.
"""
import math
import os
import pathlib
import unittest

import deuce

try:
    import numpy as np
except ImportError:
    np = None

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Backends that compute on host memory here; the emulator has its own, smaller tests.
HOST_BACKENDS = [name for name in ("cpu", "reference") if deuce.backends()[name] == "ready"]


def needs_numpy():
    """For setUpModule: skip the module, saying why, when NumPy is absent."""
    if np is None:
        if os.environ.get("DEUCE_REQUIRE_NUMPY"):
            raise AssertionError("DEUCE_REQUIRE_NUMPY is set but NumPy cannot be imported")
        raise unittest.SkipTest("NumPy is not installed")


def attend(q, k, v, *, scale=None, causal=False, left=-1, right=-1, softcap=0.0, sink=None,
           start=0):
    """One request: q (tokens, q heads, d), k and v (keys, KV heads, d); returns (out, natural lse).

    k and v end with the last live key; keys before `start` are dead.
    """
    q, k, v = (np.asarray(tensor, np.float64) for tensor in (q, k, v))
    tokens, heads, dim = q.shape
    keys, kv_heads, _ = k.shape
    out = np.zeros((tokens, heads, v.shape[-1]))
    lse = np.full((tokens, heads), -math.inf)
    scale = 1 / math.sqrt(dim) if scale is None else scale
    position = np.arange(keys)
    for i in range(tokens):
        own = keys - tokens + i
        live = position >= start
        if causal and tokens > 1:
            live &= position <= own
        if left >= 0:
            live &= position >= own - left
        if right >= 0:
            live &= position <= own + right
        for h in range(heads):
            g = h // (heads // kv_heads)
            score = k[live, g] @ q[i, h] * scale
            if softcap:
                score = softcap * np.tanh(score / softcap)
            terms = score if sink is None else np.append(score, float(sink[h]))
            if terms.size:
                top = terms.max()
                lse[i, h] = top + math.log(np.exp(terms - top).sum())
                out[i, h] = np.exp(score - lse[i, h]) @ v[live, g]
    return out, lse


def paged(rng, k, v, lengths, page, dtype=None):
    """Scatter contiguous K, V (batch, slots, heads, d) into shuffled NHD pages; (k, v, table)."""
    batch, slots, heads, _ = k.shape
    columns = -(-slots // page)
    ids = rng.permutation(batch * columns).astype(np.int32).reshape(batch, columns)
    pools = []
    for cache in (k, v):
        pool = np.full((batch * columns, page, heads, cache.shape[-1]), np.nan, cache.dtype)
        for b in range(batch):
            for j in range(lengths[b]):
                pool[ids[b, j // page], j % page] = cache[b, j]
        pools.append(pool if dtype is None else pool.astype(dtype))
    return pools[0], pools[1], ids


class Case(unittest.TestCase):
    """assertClose for arrays, assertRefused for sentences."""

    def assertClose(self, found, expected, tolerance=2e-5, what=""):
        found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
        self.assertEqual(found.shape, expected.shape, what)
        with np.errstate(invalid="ignore"):  # inf - inf: equal infinities match by ==
            near = np.abs(found - expected) <= tolerance * (1 + np.abs(expected))
        same = (found == expected) | near
        if not same.all():
            where = tuple(np.argwhere(~same)[0])
            self.fail(f"{what} at {where}: {found[where]} is not {expected[where]}; "
                      f"{(~same).sum()} of {same.size} differ")

    def assertRefused(self, kind, field, function, *arguments, **keywords):
        """function raises `kind`, whose .field is `field` and whose sentence names it."""
        with self.assertRaises(kind) as caught:
            function(*arguments, **keywords)
        self.assertIsInstance(caught.exception, deuce.Error)
        self.assertEqual(caught.exception.field, field, str(caught.exception))
        self.assertIn(field, str(caught.exception))
        return str(caught.exception)
