# SPDX-License-Identifier: Apache-2.0
"""Tensors of every kind are read in place: NumPy, ml_dtypes, integers that hold floats, DLPack of
both forms, CUDA's array interface, and any strides. Outputs come back in the kind of the query."""
import ctypes
import unittest

import deuce
import support
from deuce import _tensor
from support import HOST_BACKENDS, attend, np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def setUpModule():
    support.needs_numpy()


class Exporter:
    """A CPU tensor that can do nothing but export DLPack, old form or versioned."""

    def __init__(self, array, versioned=True, flags=0, device=(1, 0), byte_offset=0, strides=True):
        self.array, self.versioned, self.device = array, versioned, device
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        steps = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        self.tensor = _tensor._DLTensor(
            array.ctypes.data - byte_offset, device[0], device[1], array.ndim,
            {"f": 2, "i": 0, "u": 1}[array.dtype.kind], array.itemsize * 8, 1, shape,
            steps if strides else None, byte_offset)
        if versioned:
            self.tensor = _tensor._DLManagedTensorVersioned(1, 0, None, None, flags, self.tensor)
        self.keep = shape, steps

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        if not self.versioned and keywords:
            raise TypeError("an old producer knows no keywords")
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                         ctypes.c_void_p]
        self.name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return make(ctypes.addressof(self.tensor), self.name, None)


class Tensors(support.Case):

    def setUp(self):
        rng = np.random.default_rng(5)
        self.q = rng.standard_normal((2, 1, 4, 32)).astype(np.float32)
        self.k, self.v = rng.standard_normal((2, 2, 40, 2, 32)).astype(np.float32)
        self.lengths = np.array([40, 11], np.int32)
        self.wanted = self.expected(self.q, self.k, self.v)

    def expected(self, q, k, v):
        return np.stack([attend(q[b], k[b, :n], v[b, :n])[0] for b, n in enumerate(self.lengths)])

    def call(self, q=None, k=None, v=None, backend="reference", **keywords):
        q, k, v = (own if given is None else given
                   for given, own in ((q, self.q), (k, self.k), (v, self.v)))
        keywords.setdefault("cache_seqlens", self.lengths)
        return deuce.flash_attn_with_kvcache(q, k, v, backend=backend, **keywords)

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_bfloat16_and_fp8_of_ml_dtypes(self):
        q, k, v = (tensor.astype(ml_dtypes.bfloat16) for tensor in (self.q, self.k, self.v))
        for backend in HOST_BACKENDS:
            out = self.call(q, k, v, backend)
            self.assertEqual(out.dtype, ml_dtypes.bfloat16)
            self.assertClose(out, self.expected(q, k, v), 2e-2)
        k, v = (tensor.astype(ml_dtypes.float8_e4m3fn) for tensor in (self.k, self.v))
        out = self.call(q, k, v)
        self.assertClose(out, self.expected(q, k, v), 2e-2)
        q = self.q.astype(ml_dtypes.float8_e5m2)
        self.assertEqual(self.call(q, k, v).dtype, ml_dtypes.bfloat16)

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_integers_that_hold_floats_give_the_same_bits(self):
        q, k, v = (tensor.astype(ml_dtypes.bfloat16) for tensor in (self.q, self.k, self.v))
        held = self.call(q.view(np.uint16), k.view(np.uint16), v.view(np.uint16),
                         q_dtype="bfloat16", kv_dtype="bfloat16")
        self.assertEqual(held.dtype, np.uint16)
        self.assertEqual(held.tobytes(), self.call(q, k, v).tobytes())
        k8, v8 = (tensor.astype(ml_dtypes.float8_e5m2) for tensor in (self.k, self.v))
        self.assertEqual(
            self.call(q, k8.view(np.uint8), v8.view(np.int8), kv_dtype="float8_e5m2").tobytes(),
            self.call(q, k8, v8).tobytes())

    def test_dtypes_are_named_by_string_scalar_type_and_dtype(self):
        bits = self.q.astype(np.float16).view(np.uint16)
        wanted = self.call(self.q.astype(np.float16))
        for name in ("float16", np.float16, np.dtype("float16"), "torch.float16"):
            self.assertEqual(self.call(bits, q_dtype=name).tobytes(), wanted.tobytes())

    def test_dlpack_of_both_forms_is_read_in_place(self):
        for versioned in (True, False):
            k, v, lengths = (Exporter(array, versioned) for array in (self.k, self.v, self.lengths))
            self.assertClose(self.call(k=k, v=v, cache_seqlens=lengths), self.wanted)
        dense = Exporter(self.k, byte_offset=64, strides=False)
        self.assertClose(self.call(k=dense), self.wanted)
        out = np.zeros_like(self.q)
        answer = self.call(Exporter(self.q), out=Exporter(out))
        self.assertIsInstance(answer, Exporter)
        self.assertClose(out, self.wanted)

    def test_dlpack_that_cannot_be_used_is_refused(self):
        invalid, unsupported = deuce.InvalidArgument, deuce.Unsupported
        read_only, wide = Exporter(np.zeros_like(self.q), flags=1), self.k.astype(np.float64)
        cases = [
            (invalid, "out", dict(q=Exporter(self.q)), "cannot make a float32 tensor"),
            (invalid, "out", dict(out=read_only), "read-only"),
            (unsupported, "k_cache", dict(k=Exporter(self.k, flags=2)), "as a copy"),
            (unsupported, "k_cache", dict(k=Exporter(self.k, device=(10, 0))), "DLPack device"),
            (invalid, "k_cache", dict(k=Exporter(self.k, device=(2, 0))),
             "k_cache is on cuda:0 but q is on cpu"),
            (invalid, "k_cache", dict(k=Exporter(wide)), "64 bits"),
        ]
        for kind, field, keywords, words in cases:
            with self.subTest(words):
                self.assertIn(words, self.assertRefused(kind, field, self.call, **keywords))

    def test_cuda_array_interface_names_its_device(self):
        class Array:
            __cuda_array_interface__ = {"data": (4096, False), "shape": (2, 40, 2, 32),
                                        "strides": None, "typestr": "<f4", "version": 3}
        self.assertIn("is on cuda but q is on cpu",
                      self.assertRefused(deuce.InvalidArgument, "k_cache", self.call, k=Array()))

    def test_pinned_host_memory_counts_as_cpu(self):
        self.assertClose(self.call(k=Exporter(self.k, device=(3, 0))), self.wanted)

    def test_any_strides_without_a_copy(self):
        wide = np.full((2, 50, 4, 40), np.nan, np.float32)
        k = wide[:, 5:45, ::2, 3:35]
        k[:] = self.k
        swapped = self.v.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)
        backwards = self.q[:, :, ::-1].copy()[:, :, ::-1]
        for backend in HOST_BACKENDS:
            self.assertClose(self.call(backwards, k, swapped, backend), self.wanted)

    def test_later_values_in_the_same_arrays_are_seen(self):
        """The kept struct renews pointers, never data."""
        for backend in HOST_BACKENDS:
            self.setUp()
            self.call(backend=backend)
            self.k *= -1
            self.lengths[:] = 7, 40
            self.assertClose(self.call(backend=backend), self.expected(self.q, self.k, self.v))
            moved = self.k.copy(), self.v.copy()
            self.k[:], self.v[:] = np.nan, np.nan
            self.assertClose(self.call(k=moved[0], v=moved[1], backend=backend),
                             self.expected(self.q, *moved))

    def test_read_only_inputs_are_fine_and_read_only_outputs_are_not(self):
        self.k.setflags(write=False)
        self.assertClose(self.call(), self.wanted)
        out = np.zeros_like(self.q)
        self.call(out=out)
        out.setflags(write=False)
        self.assertRefused(deuce.InvalidArgument, "out", self.call, out=out)
        self.assertRefused(deuce.InvalidArgument, "out", self.call, out=bytes(4))

    def test_subclasses_and_memory_maps_of_numpy(self):
        class Mine(np.ndarray):
            pass
        self.assertClose(self.call(self.q.view(Mine), k=self.k.view(Mine)), self.wanted)

    def test_foreign_byte_order_and_odd_strides_are_refused(self):
        self.assertRefused(deuce.InvalidArgument, "q", self.call, self.q.astype(">f4"))
        odd = np.ndarray((2, 40, 2, 32), np.float32, bytearray(2 * 40 * 2 * 33 * 4 + 999), 0,
                         (40 * 2 * 131, 2 * 131, 131, 4))
        self.assertIn("multiple of its element size",
                      self.assertRefused(deuce.InvalidArgument, "k_cache", self.call, k=odd))

    def test_unsigned_ids_read_as_signed(self):
        k, v, table = support.paged(np.random.default_rng(0), self.k, self.v, self.lengths, 8)
        self.assertClose(self.call(k=k, v=v, cache_seqlens=self.lengths.astype(np.uint32),
                                   block_table=table.astype(np.uint32)), self.wanted)


if __name__ == "__main__":
    unittest.main()
