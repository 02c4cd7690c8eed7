# SPDX-License-Identifier: Apache-2.0
"""Real text for the prompts: constitution.txt, cut at its top-level headings.

Used by generate.py (instructions about passages) and capture.py (the whole text as one context).
"""

import itertools
import pathlib
import re

SOURCE = pathlib.Path(__file__).with_name("constitution.txt")

# What the model is asked, and about which passage: short and long prompts in one batch.
QUESTIONS = (
    ("Amendment I", "Summarize this text in one sentence."),
    ("Amendment VI", "Which rights does this text protect?"),
    ("Amendment XIV", "Summarize this text in one sentence."),
    ("Article II", "Summarize this text in one sentence."),
)
_HEADING = re.compile(r"Preamble|(Article|Amendment) [IVX]+")


def paragraphs(path=SOURCE):
    """Paragraphs of a text file, each as one line; lines that start with # are left out."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def passages(path=SOURCE):
    """Dict: top-level heading -> its text, paragraphs separated by an empty line."""
    found, heading = {}, None
    for paragraph in paragraphs(path):
        if _HEADING.fullmatch(paragraph):
            heading = paragraph
            found[heading] = []
        elif heading:
            found[heading].append(paragraph)
    return {heading: "\n\n".join(parts) for heading, parts in found.items()}


def chat_tokens(tokenizer, user_text):
    """Tokens of one user turn in the model's chat format, up to where the reply begins."""
    start, end = (tokenizer.control(f"<|im_{edge}|>") for edge in ("start", "end"))
    return [start, *tokenizer.encode("user\n" + user_text), end, *tokenizer.encode("\n"),
            start, *tokenizer.encode("assistant\n")]


def question_tokens(tokenizer):
    """[(heading, prompt tokens)] of QUESTIONS."""
    texts = passages()
    return [(heading, chat_tokens(tokenizer, f"{question}\n\n{texts[heading]}"))
            for heading, question in QUESTIONS]


def contexts(tokenizer, counts, path=SOURCE):
    """Consecutive stretches of a text, one of each length in `counts`, so that no two requests read
    the same tokens at the same place. The text begins again when it ends."""
    tokens = tokenizer.encode("\n\n".join(paragraphs(path)))
    if not tokens:
        raise ValueError(f"{path} holds no text")
    endless = itertools.cycle(tokens)
    return [list(itertools.islice(endless, count)) for count in counts]
