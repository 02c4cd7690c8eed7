# SPDX-License-Identifier: Apache-2.0
"""Tensors on a GPU, without any framework: memory from the CUDA driver, offered through
__cuda_array_interface__ and DLPack. Skipped where there is no GPU or no kernel for it;
DEUCE_REQUIRE_GPU=1 makes that a failure."""
import ctypes
import os
import unittest

import deuce
import support
from support import attend, np
from test_tensors import Exporter


class Driver:
    """The few driver calls that a test needs."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise OSError(f"{name} returned {status}")

    def upload(self, array):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(array.nbytes, 1)))
        self.call("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(array.ctypes.data),
                  ctypes.c_size_t(array.nbytes))
        return pointer.value

    def download(self, array, pointer):
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(pointer),
                  ctypes.c_size_t(array.nbytes))


driver = None


def setUpModule():
    global driver
    support.needs_numpy()
    try:
        driver = Driver()
        ready = [name for name in ("hopper", "blackwell") if deuce.backends()[name] == "ready"]
        reason = None if ready else f"no kernel for this GPU: {deuce.backends()['hopper']}"
    except OSError as error:
        reason = f"no GPU: {error}"
    if reason and os.environ.get("DEUCE_REQUIRE_GPU") == "1":
        raise AssertionError(reason)
    if reason:
        raise unittest.SkipTest(reason)


class OnDevice:
    """A copy of a NumPy array in device memory."""

    def __init__(self, array):
        self.host = np.ascontiguousarray(array)
        self.pointer = driver.upload(self.host)

    @property
    def __cuda_array_interface__(self):
        return {"data": (self.pointer, False), "shape": self.host.shape, "strides": None,
                "typestr": self.host.dtype.str, "version": 3}

    def numpy(self):
        driver.download(self.host, self.pointer)
        return self.host

    def dlpack(self):
        """The same memory as an object that speaks DLPack alone."""
        exporter = Exporter(self.host, device=(2, 0))
        exporter.tensor.tensor.data = self.pointer
        return exporter


class Cuda(support.Case):

    def setUp(self):
        rng = np.random.default_rng(2)
        self.lengths = (300, 1, 77)
        self.q = rng.standard_normal((3, 1, 8, 128)).astype(np.float16)
        k, v = rng.standard_normal((2, 3, 300, 2, 128)).astype(np.float16)
        self.wanted = np.stack([attend(self.q[b], k[b, :n], v[b, :n])[0]
                                for b, n in enumerate(self.lengths)])
        pools = support.paged(rng, k, v, self.lengths, 16)
        self.k, self.v, self.table = map(OnDevice, pools)
        self.kv_len = OnDevice(np.array(self.lengths, np.int32))
        self.workspace = OnDevice(np.full(64 << 20, 0xFF, np.uint8))

    def call(self, **changes):
        out = OnDevice(np.zeros_like(self.q))
        arguments = dict(q=OnDevice(self.q), k_cache=self.k, v_cache=self.v, block_table=self.table,
                         cache_seqlens=self.kv_len, out=out, workspace=self.workspace)
        arguments.update(changes)
        deuce.flash_attn_with_kvcache(**arguments)
        return out

    def test_device_tensors_take_the_kernel_of_their_device(self):
        for _ in range(3):
            self.assertClose(self.call().numpy(), self.wanted, 4e-3)
        self.assertIn(deuce.explain(self.call)["backend"], ("hopper", "blackwell"))

    def test_dlpack_names_the_device_too(self):
        out = OnDevice(np.zeros_like(self.q))
        self.call(k_cache=self.k.dlpack(), v_cache=self.v.dlpack(), out=out)
        self.assertClose(out.numpy(), self.wanted, 4e-3)

    def test_lengths_are_read_on_the_device(self):
        self.kv_len.host[:] = 0, 1, 0
        driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.kv_len.pointer),
                    ctypes.c_void_p(self.kv_len.host.ctypes.data), ctypes.c_size_t(12))
        out = self.call().numpy()
        self.assertTrue((out[[0, 2]] == 0).all())
        self.assertClose(out[1], self.wanted[1], 4e-3)

    def test_what_cannot_be_allocated_has_to_be_passed(self):
        self.assertRefused(deuce.InvalidArgument, "workspace", self.call, workspace=None)
        self.assertRefused(deuce.InvalidArgument, "out", self.call, out=None)

    def test_memory_of_two_kinds_is_refused(self):
        self.assertRefused(deuce.InvalidArgument, "cache_seqlens", self.call,
                           cache_seqlens=np.array(self.lengths, np.int32))
        self.assertRefused(deuce.InvalidArgument, "device_type", self.call, backend="cpu")


if __name__ == "__main__":
    unittest.main()
