#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rehearse-gui --screenshot: the picture's size and colours, and the exit code where a file is missing."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib


def rows_of(png):
    """Width, height and the unfiltered bytes of a PNG of 8 bits a channel (RFC 2083)."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8 and kind in (2, 6), (depth, kind)
    data, at = b"", 8
    while at < len(png):
        size, name = struct.unpack(">I4s", png[at:at + 8])
        data += png[at + 8:at + 8 + size] if name == b"IDAT" else b""
        at += 12 + size
    return width, height, zlib.decompress(data)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        events = [{"ph": "X", "cat": "kernel", "name": f"gemm{i}", "pid": 0, "tid": 1, "ts": 10 * i, "dur": 8} for i in range(50)]
        with open(f"{folder}/t.json", "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)
        words = [program, "--open", f"{folder}/t.json", "--view", "timeline", "--size", "1100x700", "--exit"]
        done = subprocess.run([*words, "--screenshot", f"{folder}/s.png"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done
        with open(f"{folder}/s.png", "rb") as file:
            width, height, data = rows_of(file.read())
        assert (width, height) == (1100, 700), (width, height)
        assert len(set(data)) > 50, "text and boxes have many shades"
        done = subprocess.run([*words, "--screenshot", f"{folder}/none/s.png"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "cannot be written" in done.stderr, done
        done = subprocess.run([program, "--open", f"{folder}/none.json", "--exit"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "none.json" in done.stderr, done
        done = subprocess.run([*words, "--tab", "nothing"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "no such tab" in done.stderr, done
        done = subprocess.run([program, "--view", "nowhere", "--exit"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "no such screen" in done.stderr, done
        bare = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
        for words, code, text in ((["--help"], 0, "--screenshot"), (["--version"], 0, "rehearse-gui "), (["--opne", "a"], 2, "opne"),
                                  (["--size", "big"], 2, "800x600"), (["--theme", "blue"], 2, "light or dark"), ([], 3, "no display")):
            done = subprocess.run([program, *words], env=bare, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == code and text in done.stdout + done.stderr, (words, done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
