"""What the tests of the programs share: running commands, counting cases, network namespaces.

A test file defines functions test_* and calls run(globals()). It prints a line per failed or skipped
case and, at the end, the line that scripts/test adds up.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

PERF = os.environ.get("ROCE_PERF", "build/apps/roce-perf")
ENDPOINT = os.environ.get("ROCE_ENDPOINT", "build/apps/roce-endpoint")
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("ROCE_SHARED", os.path.join(SOURCE, "..", "shared"))
TESTS = ["write_bw", "write_lat", "read_bw", "read_lat", "send_bw", "send_lat", "atomic_bw",
         "atomic_lat"]


class Skip(Exception):
    """Raised by a case that cannot run here; the message says what is missing."""


class Done:
    """A finished command."""

    def __init__(self, arguments, code, out, err):
        self.arguments, self.code, self.out, self.err = arguments, code, out, err

    def __str__(self):
        return (f"$ {' '.join(self.arguments)}\nexit {self.code}\n--- stdout\n{self.out}"
                f"--- stderr\n{self.err}")


def command(arguments, timeout=60):
    """Runs a command to its end; one that does not end is an error."""
    process = subprocess.run(arguments, capture_output=True, text=True, timeout=timeout)
    return Done(arguments, process.returncode, process.stdout, process.stderr)


def expect(done, code, *texts):
    """Checks the exit status, and that each text occurs in the output."""
    assert done.code == code, f"expected exit {code}\n{done}"
    for text in texts:
        assert text in done.out + done.err, f"expected {text!r}\n{done}"
    return done


class Background:
    """A command that runs beside the test; its output goes to a file."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.file = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(arguments, stdout=self.file, stderr=subprocess.STDOUT)

    def output(self):
        self.file.seek(0)
        return self.file.read()

    def await_text(self, text, seconds=20):
        until = time.monotonic() + seconds
        while text not in self.output():
            assert self.process.poll() is None and time.monotonic() < until, \
                f"no {text!r} from {self.arguments}:\n{self.output()}"
            time.sleep(0.02)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, timeout=60):
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "none: it did not end"
        return Done(self.arguments, code, self.output(), "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.file.close()


class Namespaces:
    """Two network namespaces, joined by a veth pair: 198.18.77.1 and .2, fd00:77::1 and ::2."""

    def __init__(self, mtu=4200):
        if os.geteuid() != 0:
            raise Skip("network namespaces need root")
        stem = f"perf{os.getpid()}"
        self.names = [f"{stem}a", f"{stem}b"]
        self.links = [f"pv{os.getpid()}a", f"pv{os.getpid()}b"]
        self.mtu = mtu

    def __enter__(self):
        def ip(*words):
            subprocess.run(["ip", *words], check=True, capture_output=True)
        try:
            for name in self.names:
                ip("netns", "add", name)
            ip("link", "add", self.links[0], "netns", self.names[0], "type", "veth", "peer",
               "name", self.links[1], "netns", self.names[1])
            for i, (name, link) in enumerate(zip(self.names, self.links), 1):
                ip("-n", name, "addr", "add", f"198.18.77.{i}/24", "dev", link)
                ip("-n", name, "addr", "add", f"fd00:77::{i}/64", "dev", link, "nodad")
                ip("-n", name, "link", "set", link, "mtu", str(self.mtu), "up")
                ip("-n", name, "link", "set", "lo", "up")
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            self.__exit__()
            raise Skip(f"no network namespaces here: {error}") from error
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def inside(self, end, *arguments):
        """A command line that runs in namespace 0 or 1."""
        return ["ip", "netns", "exec", self.names[end], *arguments]

    def perf(self, end, *arguments):
        return self.inside(end, PERF, *arguments, "--port", f"afpacket:{self.links[end]}")

    def endpoint(self, end, *arguments):
        return self.inside(end, ENDPOINT, *arguments, "--port", f"afpacket:{self.links[end]}")


def load_json(text):
    """Strict JSON: NaN and infinities are errors."""
    def refuse(word):
        raise ValueError(f"{word} is no JSON")
    return json.loads(text, parse_constant=refuse)


def run(names):
    """Runs all test_* functions and ends the program."""
    only = sys.argv[1:]
    passed = failed = skipped = 0
    for name, function in list(names.items()):
        if not name.startswith("test_") or (only and name not in only):
            continue
        title = name[5:].replace("_", " ")
        try:
            function()
            passed += 1
        except Skip as reason:
            skipped += 1
            print(f"skipped: {title}: {reason}")
        except Exception:  # a case that breaks must not hide the others
            failed += 1
            print(f"FAILED: {title}\n{traceback.format_exc()}")
        sys.stdout.flush()
    print(f"test cases: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)
