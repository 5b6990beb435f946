#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives rehearse-gui under Xvfb with real keys and a real mouse (xdotool), and looks at the screen between them."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SKIP = 77


def trace(path):
    """A Chrome trace of two processes whose events are drawn in colour."""
    events = [{"ph": "X", "cat": "kernel", "name": f"gemm{i}", "pid": p, "tid": 1, "ts": 10 * i, "dur": 8}
              for p in (0, 1) for i in range(50)]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)


class Screen:
    def __init__(self, folder, program):
        self.folder = folder
        ready, says = os.pipe()  # the server takes a free number and names it when clients may come
        self.server = subprocess.Popen(["Xvfb", "-displayfd", str(says), "-screen", "0", "1280x800x24", "-nolisten", "tcp",
                                        "-noreset", "-fbdir", folder], stderr=subprocess.DEVNULL, pass_fds=[says])
        os.close(says)
        with os.fdopen(ready) as number:
            display = number.readline().strip()
        if not display:
            sys.exit(f"Xvfb ended with code {self.server.wait(20)}")
        self.env = dict(os.environ, DISPLAY=f":{display}", XDG_CONFIG_HOME=folder, XDG_RUNTIME_DIR=folder,
                        QT_QPA_PLATFORM="xcb", QT_SCALE_FACTOR="1")
        self.start([program, "--open", f"{folder}/trace.json", "--view", "timeline", "--size", "1200x760"])

    def start(self, words):
        self.program = subprocess.Popen(words, env=self.env)

    def do(self, *words):
        return subprocess.run(["xdotool", *map(str, words)], env=self.env, capture_output=True, text=True, timeout=60, check=False)

    def pixels(self):
        """What is on the screen, as bytes."""
        with open(f"{self.folder}/Xvfb_screen0", "rb") as file:
            return file.read()

    def wait(self, what, until, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            if self.program.poll() is not None:
                sys.exit(f"{what}: the window ended with code {self.program.returncode}")
            if until():
                return
            time.sleep(0.2)
        sys.exit(f"{what}: not within {seconds} s")

    def change(self, what, *words):
        """The words change the picture."""
        time.sleep(0.4)
        before = self.pixels()
        self.do(*words)
        self.wait(what, lambda: self.pixels() != before)
        print("good:", what)

    def window(self):
        """The window's number, when it is up and has the keyboard."""
        self.wait("the window comes up", lambda: self.do("search", "--name", "^Rehearse$").stdout.strip() != "")
        window = self.do("search", "--name", "^Rehearse$").stdout.split()[0]
        self.do("windowfocus", window)
        self.wait("the timeline is drawn", lambda: bytes((233, 180, 86)) in self.pixels())  # sky blue, as BGR
        return window

    def quit(self):
        time.sleep(0.5)
        self.do("key", "ctrl+q")
        end = time.time() + 30
        while self.program.poll() is None and time.time() < end:
            time.sleep(0.2)
        if self.program.poll() != 0:
            sys.exit(f"ctrl+q did not end the window well: {self.program.poll()}")
        print("good: ctrl+q ends it")

    def close(self):
        for process in (self.program, self.server):
            if process.poll() is None:
                process.terminate()
                process.wait(20)


def main():
    for tool, package in (("Xvfb", "xvfb"), ("xdotool", "xdotool")):
        if not shutil.which(tool):
            print(f"skipped: {tool} is missing (apt-get install {package})")
            return SKIP
    with tempfile.TemporaryDirectory() as folder:
        trace(f"{folder}/trace.json")
        screen = Screen(folder, sys.argv[1])
        try:
            window = screen.window()
            x, y = 900, 330  # beside the list of keys, which stays where there is no window manager
            screen.change("a click selects an event", "mousemove", x, y - 180, "click", 1)
            screen.change("w zooms in", "key", "w")
            screen.change("d moves", "key", "d")
            screen.change("the wheel with control zooms", "keydown", "ctrl", "click", 4, "keyup", "ctrl")
            screen.change("escape clears", "key", "Escape")
            screen.change("a drag marks an area", "mousemove", x, y - 180, "mousedown", 1, "mousemove", x + 200, y - 100, "mouseup", 1)
            screen.change("? shows the keys", "key", "question")
            screen.do("key", "Escape")
            screen.change("alt+5 goes to the pipeline", "windowfocus", window, "key", "alt+5")
            screen.change("ctrl+shift+p lists all commands", "key", "ctrl+shift+p")
            screen.change("letters find one", "type", "topol")
            screen.change("return runs it", "key", "Return")
            screen.change("alt+2 goes back", "windowfocus", window, "key", "alt+2")
            screen.change("/ and words search", "mousemove", x, y - 180, "click", 1, "key", "slash", "type", "gemm42")
            screen.change("return selects what is found", "key", "Return")
            screen.quit()
            screen.start([sys.argv[1]])  # the session of before: its file, its screen
            screen.window()
            print("good: the next start opens what was open")
            screen.quit()
        finally:
            screen.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
