# SPDX-License-Identifier: Apache-2.0
"""The timeline page in a headless browser: it draws, without an error and without the network, and the
picture holds the colours of what it should show.
"""
import re
import shutil
import struct
import subprocess
import unittest
import zlib

from recorded import RecordedCase

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if BROWSER is None:
    raise SystemExit("skipped: no chromium (scripts/install_packages)")

COLOURS = {"QK": (0x8A, 0xB4, 0xF8), "softmax": (0xC9, 0xA5, 0xF2), "PV": (0xFB, 0xB2, 0x6A), "TMA": (0x86, 0xCF, 0x96)}


def unfilter(kind, line, above, step):
    """One row of a PNG, in place."""
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        up = above[i]
        if kind == 1:
            guess = left
        elif kind == 2:
            guess = up
        elif kind == 3:
            guess = (left + up) // 2
        else:
            near = [(abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner)]
            guess = min(near)[2]
        line[i] = (line[i] + guess) & 255


def pixels(png):
    """Counts of the colours of a PNG of 8 bits a channel."""
    width, height, depth, colour = struct.unpack_from(">IIBB", png, 16)
    assert depth == 8 and colour in (2, 6), "an unexpected kind of PNG"
    step = 3 if colour == 2 else 4
    data = b"".join(png[m.end():m.end() + struct.unpack(">I", png[m.start() - 4:m.start()])[0]]
                    for m in re.finditer(b"IDAT", png))
    raw, counts = zlib.decompress(data), {}
    above = bytearray(width * step)
    for row in range(height):
        start = row * (width * step + 1)
        line = bytearray(raw[start + 1:start + 1 + width * step])
        if raw[start]:
            unfilter(raw[start], line, above, step)
        above = line
        for i in range(0, width * step, step):
            key = (line[i], line[i + 1], line[i + 2])
            counts[key] = counts.get(key, 0) + 1
    return counts


class Page(RecordedCase):
    arguments = ("--compare", "base,pingpong", "--kv-len", "1536", "--write", "html")

    def browse(self, *arguments):
        page = (self.folder / "timeline.html").as_uri()
        return subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,520",
             "--virtual-time-budget=3000", "--enable-logging=stderr", f"--user-data-dir={self.folder}/profile", *arguments, page],
            capture_output=True, text=True, check=False, timeout=120)

    def test_the_script_ends_and_has_drawn(self):
        dom = self.browse("--dump-dom").stdout
        body = re.search(r"<body[^>]*>", dom)
        self.assertIsNotNone(body, dom[:300])
        self.assertIn('data-ready="yes"', body[0])
        self.assertNotIn("data-error", body[0])
        self.assertGreater(int(re.search(r'data-drawn="(\d+)"', body[0])[1]), 100)

    def test_the_picture_shows_what_was_recorded(self):
        shot = self.folder / "page.png"
        run = self.browse(f"--screenshot={shot}")
        self.assertNotIn("CONSOLE", run.stderr)
        self.assertTrue(shot.exists(), run.stderr[-500:])
        counts = pixels(shot.read_bytes())
        for name, colour in COLOURS.items():
            self.assertGreater(counts.get(colour, 0), 300, f"{name}: {sorted(counts.items(), key=lambda c: -c[1])[:8]}")

    def test_the_page_asks_for_nothing(self):
        text = (self.folder / "timeline.html").read_text(encoding="utf-8")
        self.assertFalse(re.search(r"https?://|<link|<script[^>]+src|@import|fetch\(|XMLHttpRequest", text))


if __name__ == "__main__":
    unittest.main()
