# SPDX-License-Identifier: Apache-2.0
"""Tokenizer of the SmolLM2 example, on the vocabulary of the model file."""

import random
import unittest

import smollm2_model
from examples.smollm2 import text
from examples.smollm2.tokenizer import split_words

# Ids as the `tokenizers` library gives them for this vocabulary (0.23, Digits + ByteLevel).
KNOWN = {
    "Hello world, it's 1861   and": [19556, 905, 28, 357, 506, 216, 33, 40, 38, 33, 256, 284],
    "naïve — 漢字 Ⅷ ½ 😀": [3546, 46494, 1841, 17097, 137, 112, 36518, 216, 173, 223, 117, 216,
                        16738, 40303, 218],
    "def f(x):\n    return x**2\n": [1604, 275, 24, 104, 727, 472, 1003, 1792, 828, 34, 198],
}


class Words(unittest.TestCase):
    def test_words_keep_their_leading_space_and_digits_stand_alone(self):
        self.assertEqual(split_words("it's 1861  and\n\n we'll"),
                         ["it", "'s", " ", "1", "8", "6", "1", " ", " and", "\n\n", " we", "'ll"])

    def test_words_joined_are_the_text(self):
        chance = random.Random(5)
        for _ in range(2000):
            sample = "".join(chance.choice("ab's1½Ⅷ漢😀.,_ \t\n\u00a0") for _ in range(20))
            self.assertEqual("".join(split_words(sample)), sample)


class Vocabulary(unittest.TestCase):
    def setUp(self):
        self.tokenizer = smollm2_model.tokenizer()

    def test_known_texts_have_the_known_ids(self):
        for sample, ids in KNOWN.items():
            self.assertEqual(self.tokenizer.encode(sample), ids)

    def test_text_survives_the_round_trip(self):
        chance = random.Random(6)
        samples = ["", " ", "\n\n\n", *text.passages().values()]
        planes = (0x20, 0x7F), (0xA0, 0xD800), (0xE000, 0x40000)
        samples += ["".join(chr(chance.randrange(*chance.choice(planes))) for _ in range(20))
                    for _ in range(300)]
        for sample in samples:
            self.assertEqual(self.tokenizer.decode(self.tokenizer.encode(sample)), sample)

    def test_a_byte_without_a_token_becomes_the_unknown_token(self):
        self.assertEqual(self.tokenizer.encode("a\x04b"), [*self.tokenizer.encode("a"), 0,
                                                           *self.tokenizer.encode("b")])

    def test_control_tokens_are_never_made_from_plain_text(self):
        start = self.tokenizer.control("<|im_start|>")
        self.assertNotIn(start, self.tokenizer.encode("<|im_start|>"))
        self.assertEqual(self.tokenizer.decode([start]), "<|im_start|>")

    def test_control_refuses_ordinary_tokens(self):
        with self.assertRaisesRegex(ValueError, "hello is not a control token"):
            self.tokenizer.control("hello")


if __name__ == "__main__":
    unittest.main()
