#!/usr/bin/env python3
"""roce-perf with both ends in one process: results, JSON, captures, faults, limits, signals."""
import signal

from harness import *


def rows(text):
    """The numbers of the table: lists of floats."""
    return [[float(word) for word in line.split()] for line in text.splitlines()
            if re.fullmatch(r"[\s\d.]+", line) and line.strip()]


def test_each_test_passes_and_prints_perftests_table():
    for name in TESTS:
        done = expect(command([PERF, name, "-n", "200"]), 0, "over --port wire", " local address:",
                      " remote address:")
        table = rows(done.out)
        assert len(table) == 1, str(done)
        if name.endswith("_bw"):
            assert "BW average[MB/sec]" in done.out
            size, iterations, peak, average, rate = table[0]
            assert iterations == 200 and peak >= average > 0 and rate > 0, str(done)
            assert abs(average - rate * 1e6 * size / 2**20) < 0.02 * average + 0.02, str(done)
        else:
            assert "t_typical[usec]" in done.out
            _, iterations, least, most, typical, average, _, p99, p999 = table[0]
            assert iterations >= 199 and 0 < least <= typical <= p99 <= p999 <= most, str(done)
            assert least <= average <= most, str(done)


def test_data_are_validated_on_both_sides():
    checks = {"write_bw": "server", "read_bw": "client", "send_bw": "server", "atomic_bw": "both",
              "write_lat": "both", "read_lat": "client", "send_lat": "both", "atomic_lat": "both"}
    for name, side in checks.items():
        done = expect(command([PERF, name, "-n", "100", "--data_validation", "--seed", "5"]), 0)
        for end in ("client", "server"):
            line = [l for l in done.out.splitlines() if f"data validation, {end} side" in l]
            assert len(line) == 1, str(done)
            word = "no mismatch" if side in (end, "both") else "nothing to check"
            assert word in line[0], str(done)


def test_options_change_the_run():
    expect(command([PERF, "send_bw", "-b", "-q", "8", "-s", "1000", "-n", "50",
                    "--data_validation"]), 0, "Bidirectional", "Number of qps   : 8")
    expect(command([PERF, "send_bw", "-c", "UD", "-s", "1024", "-t", "16", "-n", "50",
                    "--data_validation"]), 0, "Connection type : UD")
    expect(command([PERF, "write_bw", "-c", "UC", "-n", "50"]), 0, "Connection type : UC")
    expect(command([PERF, "write_bw", "-m", "256", "-n", "50"]), 0, "Mtu            : 256[B]")
    expect(command([PERF, "write_bw", "--ipv6", "-n", "50"]), 0, "fd00::2")
    expect(command([PERF, "send_lat", "-I", "0", "-s", "100", "-n", "50", "--vlan", "5:3",
                    "--data_validation"]), 0)
    expect(command([PERF, "atomic_bw", "-A", "CMP_AND_SWAP", "-o", "4", "-n", "50",
                    "--data_validation"]), 0)
    gbits = expect(command([PERF, "write_bw", "--report_gbits", "-n", "50"]), 0)
    assert "BW average[Gb/sec]" in gbits.out


def test_all_sizes_are_run_in_turn():
    for name in ("write_bw", "read_lat", "send_lat"):
        done = expect(command([PERF, name, "-a", "-n", "5", "--data_validation"], 120), 0)
        assert [row[0] for row in rows(done.out)] == [2**i for i in range(1, 24)], str(done)


def test_a_run_by_duration_takes_its_time():
    began = time.monotonic()
    done = expect(command([PERF, "write_bw", "-D", "2", "-f", "0", "-s", "4096"]), 0)
    assert 2 <= time.monotonic() - began < 20
    assert rows(done.out)[0][1] > 100, str(done)


def test_json_holds_results_and_counters():
    done = expect(command([PERF, "write_bw", "-n", "100", "-s", "5000", "-q", "2", "--json", "-",
                           "--data_validation"]), 0)
    report = load_json(done.out)
    assert report["schema"] == "rocinante/roce-perf/1"
    assert report["passed"] is True and report["test"] == "write_bw" and report["errors"] == []
    client, server = report["sides"]
    assert (client["role"], server["role"]) == ("client", "server")
    result = client["runs"][0]["results"][0]
    assert result["size_bytes"] == 5000
    assert result["local"]["messages"] == 200
    assert result["local"]["average_gbps"] > 0
    assert server["runs"][0]["plan"]["qps"] == 2
    assert server["runs"][0]["validation"]["passed"] is True
    assert server["counters"]["transport"]["rx_write_requests"] >= 200
    assert "BW average" in done.err and "BW average" not in done.out


def test_json_of_latencies_is_in_order():
    report = load_json(expect(command([PERF, "send_lat", "--json", "-", "--quiet"]), 0).out)
    latency = report["sides"][0]["runs"][0]["results"][0]["latency"]
    order = [latency[key] for key in ("min_us", "p50_us", "p90_us", "p99_us", "p99_9_us", "max_us")]
    assert order == sorted(order) and order[0] > 0, latency


def test_perftests_json_has_its_keys():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "out.json")
        expect(command([PERF, "read_bw", "-n", "50", "--out_json_file", file]), 0)
        report = load_json(open(file, encoding="utf-8").read())
    assert report["results"]["MsgSize"] == 65536
    assert report["results"]["n_iterations"] == 50
    assert report["results"]["BW_average"] > 0
    assert report["test_info"]["Connection_type"] == "RC"


def test_output_prints_one_number():
    for name, what in (("write_bw", "bandwidth"), ("write_bw", "message_rate"),
                       ("read_lat", "latency")):
        done = expect(command([PERF, name, "-n", "50", "--output", what, "--quiet"]), 0)
        assert float(done.out) > 0, str(done)


def test_histogram_lists_all_latencies():
    sorted_ones = expect(command([PERF, "send_lat", "-n", "100", "-H"]), 0).out
    values = [float(line.split(", ")[1]) for line in sorted_ones.splitlines()
              if re.fullmatch(r"\d+, [\d.]+", line)]
    assert len(values) == 99 and values == sorted(values)
    unsorted = expect(command([PERF, "send_lat", "-n", "1000", "-U"]), 0).out
    values = [float(line.split(", ")[1]) for line in unsorted.splitlines()
              if re.fullmatch(r"\d+, [\d.]+", line)]
    assert len(values) == 999 and values != sorted(values)


def test_limits_that_are_missed_exit_1():
    expect(command([PERF, "write_bw", "-n", "50", "-w", "1e9"]), 1, "below the limit of -w")
    expect(command([PERF, "write_bw", "-n", "50", "-y", "1e9"]), 1, "below the limit of -y")
    expect(command([PERF, "write_bw", "-n", "50", "-w", "0.001", "-y", "0.000001"]), 0)


def test_recovery_from_loss_shows_in_the_counters():
    for name in ("write_bw", "read_bw", "send_bw"):
        done = expect(command([PERF, name, "-n", "300", "-u", "10", "--fault", "drop:rate=0.01",
                               "--fault", "drop:rate=0.01,dir=rx", "--data_validation", "--json",
                               "-", "--seed", "3"]), 0)
        report = load_json(done.out)
        assert sum(fault["picked"] for fault in report["faults"]) > 0, str(done)
        transport = [side["counters"]["transport"] for side in report["sides"]]
        assert sum(t["roce_slow_restart"] + t["implied_nak_seq_err"] for t in transport) > 0, \
            json.dumps(transport)


def test_corrupted_packets_are_rejected_by_their_icrc_and_sent_again():
    done = expect(command([PERF, "write_bw", "-n", "300", "-u", "10", "--fault",
                           "corrupt:rate=0.01", "--data_validation", "--json", "-", "--seed",
                           "3"]), 0)
    report = load_json(done.out)
    rejects = report["sides"][1]["counters"]["worker"]["rejects"]
    assert sum(rejects.values()) == report["faults"][0]["picked"] > 0, str(done)


def test_a_server_that_hears_nothing_fails_the_client_with_status_12():
    done = expect(command([PERF, "write_bw", "-n", "100", "-u", "8", "--fault",
                           "drop:opcode=RC_RDMA"]), 1, "status 12", "RETRY_EXC_ERR",
                  "UDP port 4791")
    assert rows(done.out)[0][1] == 0, str(done)


def test_an_interrupted_run_prints_what_it_has_and_exits_1():
    with Background([PERF, "write_bw", "-D", "60", "-f", "0", "-s", "4096"]) as perf:
        perf.await_text("BW average")
        time.sleep(1)
        perf.signal(signal.SIGINT)
        done = expect(perf.end(20), 1, "interrupted")
        assert rows(done.out)[0][1] > 0, str(done)


def test_the_same_seed_fixes_qpns_and_psns():
    lines = []
    for _ in range(2):
        done = expect(command([PERF, "send_bw", "-n", "5", "--seed", "42"]), 0)
        lines.append([line for line in done.out.splitlines() if " address:" in line])
    assert len(lines[0]) == 2 and lines[0] == lines[1], lines
    other = expect(command([PERF, "send_bw", "-n", "5"]), 0).out
    assert lines[0] != [line for line in other.splitlines() if " address:" in line]


def captured(folder, *arguments):
    file = os.path.join(folder, "x.pcapng")
    expect(command([PERF, *arguments, "--capture", file]), 0)
    return file


def test_tshark_finds_nothing_malformed_in_a_capture():
    if not any(os.access(os.path.join(p, "tshark"), os.X_OK)
               for p in os.environ["PATH"].split(":")):
        raise Skip("tshark is not installed")
    with tempfile.TemporaryDirectory() as folder:
        for name in TESTS:
            file = captured(folder, name, "-n", "20", "-s", "8" if "atomic" in name else "5000",
                            "--data_validation")
            fields = command(["tshark", "-r", file, "-Y", "infiniband.bth", "-T", "fields", "-e",
                              "infiniband.bth.opcode", "-e", "infiniband.bth.psn"])
            packets = fields.out.split()
            assert len(packets) >= 40, f"{name}: {fields}"
            malformed = command(["tshark", "-r", file, "-Y", "_ws.malformed", "-T", "fields", "-e",
                                 "frame.number", "-e", "_ws.col.Info"])
            assert malformed.out == "", f"{name}: {malformed}"


def test_an_independent_checker_confirms_every_icrc():
    checker = os.path.join(SHARED, "oracles", "icrc_check.py")
    if not os.path.exists(checker):
        raise Skip(f"no {checker}")
    with tempfile.TemporaryDirectory() as folder:
        for options in (["write_bw", "-s", "5001"], ["read_bw", "-s", "4097"], ["send_lat"],
                        ["atomic_bw", "-s", "8"], ["send_bw", "-c", "UD", "-s", "100"],
                        ["write_bw", "--ipv6", "-s", "3"], ["send_bw", "--vlan", "7:2"]):
            file = captured(folder, *options, "-n", "20")
            summary = expect(command([sys.executable, checker, file]), 0).out
            verdicts = re.search(r"icrc=\{([^}]*)\}", summary).group(1)
            counted = re.fullmatch(r"'ok': (\d+)", verdicts)
            assert counted and int(counted.group(1)) >= 20, summary


if __name__ == "__main__":
    run(globals())
