# SPDX-License-Identifier: Apache-2.0
"""Several threads, plans that come and go, and memory that does not grow."""
import gc
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import unittest
import warnings

import deuce
import support
from deuce import _plan
from support import HOST_BACKENDS, attend, np


def setUpModule():
    support.needs_numpy()


def problem(seed, keys, heads=4):
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((1, 1, heads, 32)).astype(np.float32)
    k, v = rng.standard_normal((2, 1, keys, 2, 32)).astype(np.float32)
    return q, k, v, attend(q[0], k[0], v[0])[0]


class Threads(support.Case):

    def test_threads_with_the_same_shape_do_not_share_a_kept_struct(self):
        for backend in HOST_BACKENDS:
            failures, start = [], threading.Barrier(6)

            def work(seed):
                try:
                    q, k, v, wanted = problem(seed, 300)
                    start.wait()
                    for step in range(40):
                        if step == 20 and seed == 0:
                            deuce.clear_plans()
                        out = deuce.flash_attn_with_kvcache(q, k, v, backend=backend)
                        self.assertClose(out[0], wanted)
                except Exception as error:  # reported below, in the main thread
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_one_plan_serves_a_growing_cache(self):
        deuce.clear_plans()
        for keys in range(65, 129):
            q, k, v, wanted = problem(keys, keys)
            self.assertClose(deuce.flash_attn_with_kvcache(q, k, v, backend="reference")[0], wanted)
        self.assertEqual(len(_plan._cache.plans), 1)

    def test_plans_are_destroyed_when_cleared(self):
        deuce.clear_plans()
        destroyed, original = [], _plan.Plan.__del__

        def counting(plan):
            destroyed.append(plan)
            original(plan)

        q, k, v, _ = problem(1, 10)
        for scale in (0.1, 0.2, 0.3):
            deuce.flash_attn_with_kvcache(q, k, v, softmax_scale=scale, backend="reference")
        self.assertEqual(len(_plan._cache.plans), 3)
        _plan.Plan.__del__ = counting
        try:
            deuce.clear_plans()
            deuce.flash_attn_with_kvcache(q, k, v, backend="reference")  # drops this thread's own
            gc.collect()
        finally:
            _plan.Plan.__del__ = original
        self.assertEqual(len(destroyed), 3)

    def test_kept_calls_of_a_thread_are_bounded(self):
        from deuce import _decode
        q, k, v, wanted = problem(1, 30)
        for length in range(1, 30):
            deuce.flash_attn_with_kvcache(q, k[:, :length], v[:, :length], backend="reference")
        kept = _plan.thread_state.current().calls
        limit, _decode._KEPT_CALLS = _decode._KEPT_CALLS, len(kept)
        try:
            deuce.flash_attn_with_kvcache(q, k, v, backend="reference", softcap=3.0)
        finally:
            _decode._KEPT_CALLS = limit
        self.assertEqual(len(kept), 1)

    def test_an_exception_leaves_the_next_call_alone(self):
        for backend in HOST_BACKENDS:
            q, k, v, wanted = problem(1, 30)
            lengths = np.array([31], np.int32)
            with self.assertRaises(deuce.InvalidArgument):
                deuce.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, backend=backend)
            lengths[0] = 30
            out = deuce.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, backend=backend)
            self.assertClose(out[0], wanted)

    def test_splits_use_a_clean_workspace_every_time(self):
        """Plans take turns in one thread: partial results of one must not count for another."""
        for backend in HOST_BACKENDS:
            for seed in range(30):
                keys = 200 + 37 * seed
                q, k, v, wanted = problem(seed, keys, heads=(2, 4, 8)[seed % 3])
                for splits in (0, 3, 7):
                    out = deuce.flash_attn_with_kvcache(q, k, v, num_splits=splits, backend=backend)
                    self.assertClose(out[0], wanted)

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_a_forked_child_computes_with_threads_of_its_own(self):
        for backend in HOST_BACKENDS:
            q, k, v, wanted = problem(1, 3000, heads=8)
            deuce.flash_attn_with_kvcache(q, k, v, backend=backend)

            def compute():
                out = deuce.flash_attn_with_kvcache(q, k, v, backend=backend)
                self.assertClose(out[0], wanted)
                if backend == "cpu" and sys.platform == "linux":
                    cpus = len(os.sched_getaffinity(0))
                    self.assertEqual(len(os.listdir("/proc/self/task")), cpus)
                deuce.clear_plans()
                out = deuce.flash_attn_with_kvcache(q, k, v, backend=backend)
                self.assertClose(out[0], wanted)

            self.assertChildSucceeds(compute)
            out = deuce.flash_attn_with_kvcache(q, k, v, backend=backend)  # the parent's plan
            self.assertClose(out[0], wanted)

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_a_child_is_not_held_up_by_what_other_threads_were_doing(self):
        q, k, v, wanted = problem(1, 300)
        ended = threading.Event()

        def work(clearing):
            while not ended.is_set():
                deuce.flash_attn_with_kvcache(q, k, v)
                if clearing:
                    deuce.clear_plans()

        def compute():
            self.assertClose(deuce.flash_attn_with_kvcache(q, k, v)[0], wanted)
            deuce.clear_plans()
            self.assertClose(deuce.flash_attn_with_kvcache(q, k, v)[0], wanted)

        threads = [threading.Thread(target=work, args=(i == 0,)) for i in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(60):
                self.assertChildSucceeds(compute)
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def test_a_forked_pool_of_processes_computes(self):
        if "fork" not in multiprocessing.get_all_start_methods():
            self.skipTest("this system has no fork")
        inputs = [problem(seed, 100) for seed in range(6)]
        deuce.flash_attn_with_kvcache(*inputs[0][:3])
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results = pool.map_async(_attend_here, [tensors[:3] for tensors in inputs]).get(60)
        for out, (*_, wanted) in zip(results, inputs):
            self.assertClose(out[0], wanted)

    def assertChildSucceeds(self, body):
        """body() raises nothing in a forked child, within 20 s."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads
            child = os.fork()
        if child == 0:
            signal.alarm(20)
            status = 1
            try:
                body()
                status = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0, "signal 14: the child did not end")


def _attend_here(tensors):
    return deuce.flash_attn_with_kvcache(*tensors)


if __name__ == "__main__":
    unittest.main()
