# SPDX-License-Identifier: Apache-2.0
"""Judges attentions against Deuce's backend `reference` (double precision) while a model runs.

Used by generate.py. All sides get the same q and the same cache, so a comparison is about one
attention alone: no error is carried from layer to layer. The bound is that of tolerance.py.
"""

import numpy as np

from examples.smollm2.attention import DeuceAttention
from examples.smollm2.tolerance import bound


class JudgedAttention:
    """Runs the model with `leader`; in the steps chosen by before_step(), `leader` and `others` are
    compared with `reference`: the first step (prompt chunks) and the first `decode_steps` steps of
    one token a request. Each such step costs a double-precision pass over all layers."""

    def __init__(self, leader, *others, decode_steps=2):
        self._leader, self._judged = leader, (leader, *others)
        self._reference = DeuceAttention("reference")
        self._left = {"prompt": 1, "decode": decode_steps}
        self._checking = False
        self.calls = 0
        # attention name -> list over layers: (largest |out - reference|, largest share of the bound)
        self.worst = {attention.name: {} for attention in self._judged}

    @property
    def seconds(self):
        return self._leader.seconds

    def before_step(self, _number, batch):
        kind = "decode" if batch.is_decode else "prompt"
        self._checking = self._left[kind] > 0
        self._left[kind] -= self._checking

    def __call__(self, q, cache, layer, batch):
        out = self._leader(q, cache, layer, batch)
        if self._checking:
            expected = self._reference(q, cache, layer, batch)
            limit = bound(q, cache, layer, batch)
            self.calls += 1
            for attention in self._judged:
                values = out if attention is self._leader else attention(q, cache, layer, batch)
                error = np.abs(values - expected)
                # A NaN fails every comparison: it counts as infinitely far off.
                worst = (np.nan_to_num(error, nan=np.inf).max(),
                         np.nan_to_num(error / limit, nan=np.inf).max())
                before = self.worst[attention.name].get(layer, (0.0, 0.0))
                self.worst[attention.name][layer] = tuple(map(max, before, map(float, worst)))
        return out
