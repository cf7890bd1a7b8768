#!/usr/bin/env python3
"""Wrong and informative uses of the programs: exit status, message, fix."""
from harness import *


def test_help_and_version_exit_0():
    for program, name in ((PERF, "roce-perf"), (ENDPOINT, "roce-endpoint")):
        text = expect(command([program, "--help"]), 0, f"usage: {name}", "Examples:", "--port SPEC",
                      "afpacket:IFACE", "Exit status").out
        assert max(map(len, text.splitlines())) < 120
        expect(command([program, "--version"]), 0, f"{name} 0.")


def test_wrong_uses_exit_2_with_a_message():
    table = [
        ([], "no test is named"),
        (["nosuch"], "nosuch: is no test"),
        (["write_bw", "--nosuch"], "--nosuch: is no option"),
        (["write_bw", "--bidirectionl"], "did you mean --bidirectional?"),
        (["write_bw", "-s", "x"], "-s x: is no size"),
        (["write_bw", "-n"], "-n: needs a value"),
        (["write_bw", "-R"], "-R: cannot apply"),
        (["write_bw", "--port", "18515"], "-p 18515"),
        (["write_bw", "--port", "afpacket:nosuchif0", "--ip", "198.18.0.1/24"], "nosuchif0"),
        (["write_bw", "198.18.0.9"], "--port SPEC"),
        (["write_bw", "--persistent"], "--persistent"),
        (["write_bw", "-m", "4096", "--mtu", "1500"], "-m 1024"),
        (["write_bw", "--port", "null"], "--ip 198.18.0.1/24"),
        (["write_bw", "--ipv6", "--ip", "198.18.0.1/24"], "no IPv6 address"),
        (["write_bw", "--capture", "/nosuchdir/x.pcapng"], "/nosuchdir/x.pcapng"),
        (["read_bw", "-c", "UD"], "read_bw needs RC"),
        (["send_lat", "-b"], "-b: a latency test is a ping-pong"),
        (["write_bw", "-D", "3"], "twice the margin"),
    ]
    for arguments, message in table:
        done = expect(command([PERF, *arguments]), 2, message)
        assert done.out == "", f"messages belong to stderr\n{done}"
        assert done.err.startswith("roce-perf: "), str(done)


def test_wrong_uses_of_the_endpoint_exit_2():
    table = [
        ([], "--port SPEC"),
        (["--port", "wire"], "leads to nobody"),
        (["--serve", "x=1"], "does not begin with a test"),
        (["--port", "null"], "--ip"),
        (["write_bw"], "write_bw: is not expected here"),
    ]
    for arguments, message in table:
        expect(command([ENDPOINT, *arguments]), 2, message)


def test_json_that_cannot_be_written_exits_2():
    expect(command([PERF, "write_bw", "-n", "5", "--json", "/nosuchdir/x.json"]), 2, "/nosuchdir")


def test_check_names_what_is_missing_and_the_command_that_mends_it():
    done = expect(command([PERF, "--check", "--port", "afpacket:nosuchif0"]), 2, "nosuchif0")
    assert "error:" in done.out, str(done)
    expect(command([PERF, "--check", "--port", "wire"]), 0)


def test_flags_that_change_nothing_are_noted():
    done = expect(command([PERF, "write_bw", "-n", "5", "-F", "-d", "mlx5_0", "-x", "3"]), 0)
    assert done.err.count("changes nothing") == 3, str(done)
    quiet = expect(command([PERF, "write_bw", "-n", "5", "-F", "--quiet"]), 0)
    assert quiet.err == "", str(quiet)


if __name__ == "__main__":
    run(globals())
