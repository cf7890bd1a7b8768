#!/usr/bin/env python3
"""The JSON of each program against its schema in docs/schemas, for passes, failures and interrupts."""
import signal

from harness import *

try:
    import jsonschema
except ImportError:
    jsonschema = None


def validate(report):
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed")
    name = report["schema"].removeprefix("rocinante/").replace("/", "-")
    file = os.path.join(SOURCE, "docs", "schemas", f"{name}.schema.json")
    schema = json.load(open(file, encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(report, schema)
    return report


def perf(code, *arguments):
    return validate(load_json(expect(command([PERF, *arguments, "--json", "-"], 120), code).out))


def test_each_test_reports_by_its_schema():
    for name in TESTS:
        perf(0, name, "-n", "20", "--data_validation")


def test_flags_that_change_the_report_keep_to_the_schema():
    perf(0, "write_bw", "-D", "2", "-f", "0", "-s", "4096", "-b", "-q", "3", "-N")
    perf(0, "send_lat", "-D", "2", "-f", "0")
    perf(0, "read_bw", "-a", "-n", "5")
    perf(0, "send_bw", "-c", "UD", "-s", "100", "-n", "50", "--vlan", "5:3", "--tclass", "96")


def test_a_failed_run_says_why():
    report = perf(1, "write_bw", "-n", "100", "-u", "8", "--fault", "drop:opcode=RC_RDMA")
    assert report["passed"] is False and report["errors"], report
    client = report["sides"][0]["runs"][0]
    assert client["cause"] == "peer_vanished" and "status 12" in client["error"], client
    assert report["faults"][0]["picked"] > 0, report["faults"]


def test_an_interrupted_run_is_reported():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "x.json")
        with Background([PERF, "write_bw", "-D", "60", "-f", "0", "-s", "4096", "--json",
                         file]) as run:
            run.await_text("BW average")
            time.sleep(0.5)
            run.signal(signal.SIGINT)
            expect(run.end(20), 1)
        report = validate(load_json(open(file, encoding="utf-8").read()))
    assert report["sides"][0]["runs"][0]["cause"] == "interrupted", report


def test_words_that_are_no_utf_8_are_replaced():
    done = subprocess.run([PERF, "write_bw", "-n", "5", "--json", "-", "--fault",
                           b"drop:rate=0.0\xff"], capture_output=True, timeout=60)
    assert done.returncode == 2, done  # no rate; and no crash on the way to say so
    assert b"rate" in done.stderr, done


def test_the_endpoint_reports_by_its_schema():
    with Namespaces() as net, tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "endpoint.json")
        with Background(net.endpoint(1, "--json", file)) as endpoint:
            endpoint.await_text("TCP port 18522")
            expect(command(net.perf(0, "write_bw", "-n", "20", "198.18.77.2")), 0)
            endpoint.signal(signal.SIGTERM)
            expect(endpoint.end(20), 0)
        report = validate(load_json(open(file, encoding="utf-8").read()))
    assert report["clients"]["passed"] == 1, report["clients"]


if __name__ == "__main__":
    run(globals())
