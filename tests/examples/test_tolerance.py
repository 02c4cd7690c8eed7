# SPDX-License-Identifier: Apache-2.0
"""The example's NumPy mirror of the tolerance formula against the judge of the C++ tests, which
the program named by DEUCE_TOLERANCE_BOUNDS lets speak."""

import os
import subprocess
import unittest

import numpy as np

from examples.smollm2.tolerance import precision_of, request_bound


class Tolerance(unittest.TestCase):
    def test_the_mirror_gives_the_bounds_of_the_judge(self):
        program = os.environ["DEUCE_TOLERANCE_BOUNDS"]
        chance = np.random.default_rng(11)
        for rows, q_heads, kv_heads, head_dim, keys, size in (
                (1, 9, 3, 64, 70, 1), (5, 4, 2, 16, 12, 1), (3, 2, 2, 24, 3, 4), (1, 1, 1, 8, 1, 1),
                (2, 3, 1, 32, 200, 0.1)):
            q, k, v = (np.float32(size * chance.normal(size=(count, heads, head_dim)))
                       for count, heads in ((rows, q_heads), (keys, kv_heads), (keys, kv_heads)))
            for backend, rounded in (("cpu", 0), ("hopper", 1)):
                with self.subTest(rows=rows, q_heads=q_heads, keys=keys, backend=backend):
                    shape = map(str, (rows, q_heads, kv_heads, head_dim, keys, rounded))
                    run = subprocess.run([program, *shape], check=True, capture_output=True,
                                         input=q.tobytes() + k.tobytes() + v.tobytes())
                    ours = request_bound(q, k, v, precision_of(backend))
                    theirs = np.array(run.stdout.split(), float).reshape(ours.shape)
                    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
