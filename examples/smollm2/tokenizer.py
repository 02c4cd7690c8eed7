# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE tokenizer, built from the metadata of a GGUF file (tokenizer.ggml.*).

Used by generate.py and capture.py. decode(encode(text)) == text, but for the few bytes that this
vocabulary lacks (six control characters, the lead bytes 0xF1 and 0xF2 of unassigned planes, bytes
that UTF-8 never has): the unknown token stands for each of those.

Splitting rule `smollm`: every digit (any number character) stands alone, then GPT-2's words (a
leading space belongs to the word behind it). Python's `re` has no Unicode categories, so characters
are first mapped to one of five classes and the words are found on the string of classes.
"""

import re
import unicodedata

from examples.smollm2.gguf import GgufError

_CONTRACTION = re.compile(r"'(?:s|t|re|ve|m|ll|d)")
# Classes: L letter, N number, _ plain space, S other white space, O anything else.
_SEGMENT = re.compile(r"N|[^N]+")
_WORD = re.compile(r"_?L+|N|_?O+|[_S]+(?![LO])|[_S]+")


def _class_of(character):
    if character.isspace():
        return "_" if character == " " else "S"
    category = unicodedata.category(character)[0]
    return category if category in "LN" else "O"


def split_words(text):
    """Pieces of `text` that BPE may merge within; joined they are `text` again."""
    classes = "".join(map(_class_of, text))
    words = []
    for segment in _SEGMENT.finditer(classes):   # GPT-2's rule sees one segment, not its neighbours
        start, end = segment.span()
        while start < end:
            match = _CONTRACTION.match(text, start, end) or _WORD.match(classes, start, end)
            words.append(text[start:match.end()])
            start = match.end()
    return words


def _byte_characters():
    """GPT-2's printable stand-in for each byte: itself where printable, else from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (byte for byte in range(256) if byte not in printable)
    table = {byte: chr(byte) for byte in printable}
    table.update({byte: chr(256 + index) for index, byte in enumerate(others)})
    return table


class Tokenizer:
    """encode(text) -> token ids, decode(ids) -> text; `end_of_text` is the id that ends a reply."""

    _CONTROL = 3   # token_type of <|im_start|> and its like

    def __init__(self, gguf):
        kinds = gguf.require("tokenizer.ggml.model", str), gguf.require("tokenizer.ggml.pre", str)
        if kinds != ("gpt2", "smollm"):
            raise GgufError(f"the tokenizer is {'/'.join(kinds)}; gpt2/smollm is what this reads")
        self._tokens = gguf.require("tokenizer.ggml.tokens", list)
        self._ids = {token: index for index, token in enumerate(self._tokens)}
        merges = gguf.require("tokenizer.ggml.merges", list)
        self._ranks = {tuple(merge.split(" ", 1)): rank for rank, merge in enumerate(merges)}
        types = gguf.require("tokenizer.ggml.token_type", list)
        self._control = {i for i, kind in enumerate(types) if kind == self._CONTROL}
        self.end_of_text = gguf.require("tokenizer.ggml.eos_token_id", int)
        self._unknown = gguf.require("tokenizer.ggml.unknown_token_id", int)
        self._to_character = _byte_characters()
        self._to_byte = {character: byte for byte, character in self._to_character.items()}
        self._cache = {}

    def _merge(self, word):
        """BPE: join the neighbours of lowest rank until no pair is in the merge list."""
        parts = [self._to_character[byte] for byte in word.encode("utf-8")]
        while len(parts) > 1:
            pairs = list(zip(parts, parts[1:]))
            best = min(pairs, key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            joined, index = [], 0
            while index < len(parts):
                pair_here = tuple(parts[index:index + 2]) == best
                joined.append("".join(best) if pair_here else parts[index])
                index += 2 if pair_here else 1
            parts = joined
        return [self._ids.get(part, self._unknown) for part in parts]

    def encode(self, text):
        """Token ids of plain text: control tokens are never made from it."""
        ids = []
        for word in split_words(text):
            if word not in self._cache:
                self._cache[word] = self._merge(word)
            ids += self._cache[word]
        return ids

    def control(self, token):
        """Id of a control token such as <|im_start|>."""
        if self._ids.get(token) not in self._control:
            raise GgufError(f"{token} is not a control token of this vocabulary")
        return self._ids[token]

    def decode(self, ids):
        """Text of the ids; control tokens appear by name, broken UTF-8 as the replacement mark."""
        pieces = []
        for index in ids:
            token = self._tokens[index]
            plain = index not in self._control
            pieces.append(bytes(map(self._to_byte.get, token)) if plain else token.encode())
        return b"".join(pieces).decode("utf-8", errors="replace")
