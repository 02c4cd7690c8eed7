# SPDX-License-Identifier: Apache-2.0
"""Loads SmolLM2 once for all tests of a process, or skips them with the reason."""

import functools
import unittest

from examples.smollm2.gguf import GgufFile
from examples.smollm2.model import Model, find_model_file
from examples.smollm2.tokenizer import Tokenizer


@functools.cache
def gguf():
    try:
        return GgufFile(find_model_file())
    except FileNotFoundError as error:
        raise unittest.SkipTest(str(error)) from None


@functools.cache
def tokenizer():
    return Tokenizer(gguf())


@functools.cache
def model():
    return Model(gguf())
