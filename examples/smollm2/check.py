# SPDX-License-Identifier: Apache-2.0
"""Judges attentions against Deuce's backend `reference` (double precision) while a model runs.

Used by generate.py. All sides get the same q and the same cache, so a comparison is about one
attention alone: no error is carried from layer to layer. The bound is that of tolerance.py.
Also compares the tokens of two runs.
"""

import numpy as np

from examples.smollm2.attention import DeuceAttention
from examples.smollm2.tolerance import bound, precision_of

# Two runs whose attentions differ in the last bits of fp32 round some elements of K and V to
# different bfloat16 values, which moves logits by some hundredths: a choice closer than this, in
# logits, may fall either way. An fp32 cache leaves no such excuse.
NEAR_TIE = {"f32": 0.0, "bf16": 0.05}


def first_differences(ours, theirs):
    """[(request, index, lead)] of the first token in which two Generations of the same prompts
    differ; lead: of that choice, in logits, the smaller of the two runs."""
    found = []
    for request, (a, b) in enumerate(zip(ours.replies, theirs.replies)):
        if a != b:
            index = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
            found.append((request, index, min(ours.leads[request][index],
                                              theirs.leads[request][index])))
    return found


class JudgedAttention:
    """Runs the model with `leader`; in the steps chosen by before_step(), `leader` and `others` are
    compared with `reference`: the first step (prompt chunks) and the first `decode_steps` steps of
    one token a request. Each such step costs a double-precision pass over all layers."""

    def __init__(self, config, leader, *others, decode_steps=2):
        self._leader, self._judged = leader, (leader, *others)
        self._reference = DeuceAttention(config, "reference")
        self._left = {"prompt": 1, "decode": decode_steps}
        self._checking = False
        # attention name -> layer -> (largest |out - reference|, largest share of the bound)
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
            limits = {}
            for attention in self._judged:
                values = out if attention is self._leader else attention(q, cache, layer, batch)
                rounding = precision_of(attention.backend)
                if rounding not in limits:
                    limits[rounding] = bound(q, cache, layer, batch, rounding)
                self._note(attention.name, layer, np.abs(values - expected), limits[rounding])
        return out

    def worst_of(self, attention):
        """(layer, largest |out - reference|, share of the tolerance) where the share is largest."""
        layers = self.worst[attention.name]
        layer = max(layers, key=lambda index: layers[index][1])
        return layer, *layers[layer]

    def _note(self, name, layer, error, limit):
        # A NaN would lose every comparison, so it counts as infinitely far off.
        found = (float(np.nan_to_num(x, nan=np.inf).max()) for x in (error, error / limit))
        self.worst[name][layer] = tuple(map(max, self.worst[name].get(layer, (0.0, 0.0)), found))
