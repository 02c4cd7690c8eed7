# SPDX-License-Identifier: Apache-2.0
"""Greedy generation for several requests at once, as a serving engine runs it: every step takes
what is left of the prompts, up to a budget of tokens, beside one new token of each request that is
past its prompt. So one attention call sees ragged query lengths and ragged contexts.

Used by generate.py and capture.py. The schedule depends on the lengths alone, never on the
attention, so two runs with different attentions make the same steps.
"""

import dataclasses
import time

import numpy as np

from examples.smollm2.model import Batch


@dataclasses.dataclass
class Step:
    """What one step moved and how long it took (seconds)."""
    batch: Batch
    kv_tokens: int            # keys read, summed over the requests of the step
    seconds: float
    attention_seconds: float


@dataclasses.dataclass
class Generation:
    """replies: new tokens by request. leads: alike, how far the token's logit was ahead of the
    runner-up's, a measure of how much error greedy decoding would have borne. steps: Step objects.
    """
    replies: list
    leads: list
    steps: list


def _take(pending, budget):
    """The next tokens of each request, at most `budget` in total; removes them from `pending`."""
    taken = {}
    for request, tokens in pending.items():
        count = min(len(tokens), budget)
        if count:
            taken[request], pending[request] = tokens[:count], tokens[count:]
            budget -= count
    return taken


def generate(model, cache, prompts, attention, max_tokens, budget=256, stop_token=None,
             before_step=None):
    """Runs all prompts to `max_tokens` new tokens each, or to `stop_token`.

    cache: empty, one row per prompt. budget: most tokens of a step. before_step(number, batch) is
    called ahead of each step. Returns a Generation.
    """
    pending = {request: list(tokens) for request, tokens in enumerate(prompts)}
    result = Generation([[] for _ in prompts], [[] for _ in prompts], [])
    while pending:
        batch = Batch.of(cache, _take(pending, budget))
        if before_step:
            before_step(len(result.steps), batch)
        attention_before, start = attention.seconds, time.perf_counter()
        logits = model.step(batch, cache, attention)
        result.steps.append(Step(batch, int(cache.kv_len[batch.requests].sum()),
                                 time.perf_counter() - start, attention.seconds - attention_before))
        for row, request in zip(logits, batch.requests.tolist()):
            if pending[request]:
                continue   # a prompt that goes on in the next step: its logits say nothing yet
            second, token = np.argpartition(row, -2)[-2:].tolist()
            result.replies[request].append(token)
            result.leads[request].append(float(row[token] - row[second]))
            if token == stop_token or len(result.replies[request]) == max_tokens:
                del pending[request]
            else:
                pending[request] = [token]
    return result
