# SPDX-License-Identifier: Apache-2.0
"""Prints "passed failed skipped" of a ctest JUnit file; a missing or empty file counts as one failure."""
import sys
import xml.etree.ElementTree as xml

try:
    suite = xml.parse(sys.argv[1]).getroot()
    total, failed, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "skipped"))
    disabled = int(suite.get("disabled", 0))
    if total == 0:
        raise ValueError("no test ran")
    print(total - failed - skipped - disabled, failed, skipped + disabled)
except (OSError, ValueError, xml.ParseError) as error:
    print(f"{sys.argv[1]}: {error}", file=sys.stderr)
    print(0, 1, 0)
