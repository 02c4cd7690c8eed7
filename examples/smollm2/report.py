# SPDX-License-Identifier: Apache-2.0
"""What generate.py prints: a screen of facts, each next to what it is to be measured by."""

import json
import pathlib
import statistics
import subprocess
import textwrap

_WIDTH = 100
_LABEL = 12


def _line(label, *facts):
    print(f"{label:<{_LABEL}}" + " · ".join(facts), flush=True)


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
    _line("attention", attention.name, *([f"backend {attention.backend}"]
                                         if attention.name == "deuce" else []))


def show_replies(tokenizer, prompts, result):
    print()
    for (title, _), reply in zip(prompts, result.replies):
        body = tokenizer.decode([token for token in reply if token != tokenizer.end_of_text])
        title = textwrap.shorten(title, 30)
        print(textwrap.fill(f"{title}: {' '.join(body.split())}", _WIDTH, subsequent_indent="  "))
    print()


def worst_share(judge, attention):
    """Largest error of an attention in all layers, as a share of the tolerance."""
    return max(share for _, share in judge.worst[attention.name].values())


def show_checks(result, plain, judge):
    total = sum(map(len, plain.replies))
    equal = sum(a == b for ours, theirs in zip(result.replies, plain.replies)
                for a, b in zip(ours, theirs))
    verdict = "equal" if result.replies == plain.replies else "DIFFERENT"
    _line("tokens", f"{equal} of {total} as with NumPy attention: {verdict}",
          f"closest choice was won by {min(result.lead, plain.lead):.4f} logits")
    for name, layers in judge.worst.items():
        layer, (error, share) = max(layers.items(), key=lambda item: item[1][1])
        verdict = "within" if share <= 1 else "BEYOND"
        _line("reference" if name == "deuce" else "", f"{name}: {len(layers)} layers, worst error "
              f"{error:.1e} = {share:.1%} of the tolerance (layer {layer}): {verdict}")


def read_roof():
    """The machine's read roof in GB/s by `deuce info --roof`, or None without the tool."""
    root = pathlib.Path(__file__).resolve().parents[2]
    for tool in sorted(root.glob("build/*/bin/deuce")):
        answer = subprocess.run([tool, "info", "--roof", "--json"], capture_output=True, text=True)
        if answer.returncode == 0:
            return json.loads(answer.stdout)["roof"]["gb_per_s"]
    return None


def show_times(cache, result, attention):
    prompt = [step for step in result.steps if not step.batch.is_decode]
    decode = [step for step in result.steps if step.batch.is_decode]
    tokens = sum(len(step.batch.tokens) for step in prompt)
    seconds = sum(step.seconds for step in prompt)
    inside = sum(step.attention_seconds for step in prompt)
    _line("prompts", f"{tokens} tokens in {len(prompt)} steps, {seconds:.1f} s",
          f"attention {inside:.2f} s of it")
    if not decode:
        return
    step = statistics.median(step.seconds for step in decode)
    inside = statistics.median(step.attention_seconds for step in decode)
    layers, per_token = cache.k.shape[0], cache.bytes_per_token
    rates = [layers * per_token * s.kv_tokens / s.attention_seconds / 1e9 for s in decode]
    megabytes = layers * per_token * statistics.median(s.kv_tokens for s in decode) / 1e6
    _line("decoding", f"{len(decode)} steps of {step * 1e3:.1f} ms",
          f"attention {inside * 1e3:.2f} ms of it, {inside / layers * 1e6:.0f} µs a layer")
    roof = read_roof()
    _line("bandwidth", f"{megabytes:.1f} MB of K and V a step at {statistics.median(rates):.1f} GB/s",
          f"read roof of this machine {roof:.1f} GB/s" if roof else
          "read roof unknown: build the tool `deuce`")
