# SPDX-License-Identifier: Apache-2.0
"""What generate.py prints: a screen of facts, each next to what it is to be measured by."""

import json
import pathlib
import statistics
import subprocess
import textwrap

from examples.smollm2.check import NEAR_TIE

_WIDTH = 100
_LABEL = 12


def _line(label, *facts):
    print(f"{label:<{_LABEL}}" + " · ".join(facts), flush=True)


def _backend_facts(attention):
    """Which backend and kernel of Deuce run, in its own words; nothing for NumPy."""
    if attention.name != "deuce":
        return
    kernel = attention.facts["kernel"]
    yield f"{attention.facts['version']}, backend {attention.backend}, kernel {kernel['kernel']}"
    if "threads" in kernel:
        yield f"{kernel['threads']} threads"


def show_setup(gguf, model, prompts, options, attention, seconds):
    config = model.config
    types = ", ".join(f"{n} {kind}" for kind, n in sorted(gguf.tensor_types().items()))
    _line("model", f"{gguf.metadata.get('general.name', 'unnamed')} ({types} tensors)",
          f"loaded in {seconds:.1f} s")
    _line("shape", f"{config.layers} layers", f"{config.q_heads} query heads",
          f"{config.kv_heads} KV heads", f"head dim {config.head_dim}", "causal")
    _line("requests", f"{len(prompts)} in one batch, prompts of "
          + ", ".join(f"{len(tokens)}" for _, tokens in prompts) + " tokens",
          f"steps of up to {options.budget}")
    _line("cache", f"paged, {options.page_size} tokens a page, pages shuffled", options.cache,
          "unused slots hold NaN")
    _line("attention", attention.name, *_backend_facts(attention))


def show_replies(tokenizer, prompts, result):
    print()
    for (title, _), reply in zip(prompts, result.replies):
        body = tokenizer.decode([token for token in reply if token != tokenizer.end_of_text])
        title = textwrap.shorten(title, 30)
        print(textwrap.fill(f"{title}: {' '.join(body.split())}", _WIDTH, subsequent_indent="  "))
    print()


def show_tokens(result, plain, differences, cache_dtype):
    total = sum(map(len, plain.replies))
    closest = min(lead for run in (result, plain) for leads in run.leads for lead in leads)
    if not differences:
        _line("tokens", f"{total} of {total} as with NumPy attention",
              f"closest choice won by {closest:.4f} logits")
    for request, index, lead in differences:
        verdict = "a near tie" if lead < NEAR_TIE[cache_dtype] else "DIFFERENT"
        _line("tokens", f"request {request} parts from NumPy attention at token {index}, a choice "
              f"won by {lead:.4f} logits: {verdict}")


def show_errors(judge, *attentions):
    label = "reference"
    for attention in attentions:
        layer, error, share = judge.worst_of(attention)
        _line(label, f"{attention.name}: {len(judge.worst[attention.name])} layers, worst error "
              f"{error:.1e}, {share:.1%} of the tolerance (layer {layer})"
              + ("" if share <= 1 else ": BEYOND"))
        label = ""


def read_roof():
    """The machine's read roof in bytes/s by `deuce info --roof`, or None without the tool."""
    root = pathlib.Path(__file__).resolve().parents[2]
    for tool in sorted(root.glob("build/*/bin/deuce")):
        answer = subprocess.run([tool, "info", "--roof", "--json"], capture_output=True, text=True)
        if answer.returncode == 0:
            return json.loads(answer.stdout).get("roof_bytes_per_s")
    return None


def _phase(steps):
    """(median seconds of a step, of its attention) over the steps of one kind."""
    return (statistics.median(step.seconds for step in steps),
            statistics.median(step.attention_seconds for step in steps))


def show_times(cache, result, plain):
    """plain: the same steps with NumPy attention, or None."""
    prompt, decode = ([step for step in result.steps if step.batch.is_decode == kind]
                      for kind in (False, True))
    inside = sum(step.attention_seconds for step in prompt)
    facts = [f"{sum(len(step.batch.tokens) for step in prompt)} tokens in {len(prompt)} steps, "
             f"{sum(step.seconds for step in prompt):.1f} s", f"attention {inside:.2f} s of it"]
    if plain:
        numpy_inside = sum(s.attention_seconds for s in plain.steps if not s.batch.is_decode)
        facts.append(f"NumPy's {numpy_inside:.2f} s")
    _line("prompts", *facts)
    if not decode:
        return
    step, inside = _phase(decode)
    layers, per_token = cache.k.shape[0], cache.bytes_per_token
    facts = [f"{len(decode)} steps of {step * 1e3:.1f} ms",
             f"attention {inside * 1e3:.2f} ms of it, {inside / layers * 1e6:.0f} µs a layer"]
    if plain:
        numpy_inside = _phase([s for s in plain.steps if s.batch.is_decode])[1]
        facts.append(f"NumPy's {numpy_inside * 1e3:.1f} ms")
    _line("decoding", *facts)
    rate = statistics.median(layers * per_token * s.kv_tokens / s.attention_seconds for s in decode)
    megabytes = layers * per_token * statistics.median(s.kv_tokens for s in decode) / 1e6
    roof = read_roof()
    _line("bandwidth", f"{megabytes:.0f} MB of K and V a step, read at {rate / 1e9:.1f} GB/s",
          f"read roof of this machine {roof / 1e9:.1f} GB/s" if roof else
          "read roof unknown: build the tool `deuce`")
