#!/usr/bin/env python3
"""Programs as two processes over a veth pair in network namespaces: all tests, vanishing peers,
persistent servers, several clients at a time, half-open TCP connections. Needs root."""
import signal

from harness import *

SERVER = "198.18.77.2"


def pair_run(net, *arguments, client_code=0, server_code=0, server_arguments=None):
    """A server in namespace 1 and a client in 0."""
    with Background(net.perf(1, *(server_arguments or arguments))) as server:
        server.await_text("Waiting for client")
        client = expect(command(net.perf(0, *arguments, SERVER)), client_code)
        return client, expect(server.end(), server_code)


def test_all_tests_pass_between_two_processes():
    with Namespaces() as net:
        for name in TESTS:
            client, server = pair_run(net, name, "-n", "200", "--data_validation")
            if name in ("write_bw", "read_bw", "atomic_bw"):  # the server prints the client's rows
                row = [l for l in client.out.splitlines() if re.match(r" \d+ +\d", l)]
                assert row and row[0] in server.out, f"{client}\n{server}"
            assert "no mismatch" in client.out + server.out, f"{client}\n{server}"


def test_options_that_both_ends_share_pass():
    with Namespaces() as net:
        pair_run(net, "send_bw", "-b", "-q", "4", "-s", "3000", "-n", "100", "--data_validation")
        pair_run(net, "write_bw", "-a", "-n", "5", "--data_validation")
        pair_run(net, "send_lat", "-c", "UD", "-n", "100", "--data_validation")
        pair_run(net, "write_lat", "-c", "UC", "-n", "100", "--data_validation")
        pair_run(net, "read_bw", "-D", "2", "-f", "0", "-s", "2048")
        pair_run(net, "write_bw", "-m", "1024", "-n", "100", "-p", "20000")


def test_a_server_takes_as_many_qps_as_its_client_has():
    with Namespaces() as net:
        for name in ("write_bw", "send_bw"):
            _, server = pair_run(net, name, "-q", "8", "-n", "50", "-s", "4096",
                                 server_arguments=[name, "-n", "50", "-s", "4096"])
            assert "Number of qps   : 8" in server.out, str(server)


def test_ipv6_gids_pass():
    with Namespaces() as net:
        client, _ = pair_run(net, "write_bw", "--ipv6", "-n", "50", "--data_validation")
        assert "fd00:77::2" in client.out, str(client)


def test_gids_of_different_families_are_refused():
    with Namespaces() as net:
        client, _ = pair_run(net, "write_bw", "-n", "50", "--ipv6", client_code=1, server_code=1,
                             server_arguments=["write_bw", "-n", "50"])
        assert "family" in client.out + client.err, str(client)


def test_the_smaller_mtu_of_two_ports_is_used():
    with Namespaces(mtu=1500) as net:
        client, _ = pair_run(net, "write_bw", "-n", "50", "--data_validation")
        assert "Mtu            : 1024[B]" in client.out, str(client)


def test_no_server_exits_2_and_says_so():
    with Namespaces() as net:
        expect(command(net.perf(0, "write_bw", SERVER)), 2, SERVER)
        expect(command(net.perf(0, "write_bw", "no.such.host.invalid")), 2, "no.such.host.invalid")


def test_a_taken_tcp_port_exits_2_and_says_so():
    with Namespaces() as net, Background(net.perf(1, "write_bw")) as server:
        server.await_text("Waiting for client")
        expect(command(net.inside(1, PERF, "write_bw", "--port", "null", "--ip",
                                  "198.18.0.1/24")), 2, "18515")


def test_a_client_whose_server_is_killed_exits_1():
    with Namespaces() as net:
        for name in ("write_bw", "send_bw", "send_lat"):
            with Background(net.perf(1, name, "-D", "60", "-f", "0")) as server:
                server.await_text("Waiting for client")
                with Background(net.perf(0, name, "-D", "60", "-f", "0", "-u", "10",
                                         SERVER)) as client:
                    client.await_text("t_avg" if name.endswith("lat") else "BW average")
                    time.sleep(0.5)
                    server.signal(signal.SIGKILL)
                    done = expect(client.end(30), 1)
                    assert "closed the connection" in done.out or "status 12" in done.out, str(done)


def test_a_server_whose_client_is_killed_exits_1():
    with Namespaces() as net:
        for name in ("write_bw", "send_bw", "read_lat", "write_lat"):
            with Background(net.perf(1, name, "-D", "60", "-f", "0")) as server:
                server.await_text("Waiting for client")
                with Background(net.perf(0, name, "-D", "60", "-f", "0", SERVER)) as client:
                    client.await_text("t_avg" if name.endswith("lat") else "BW average")
                    time.sleep(0.5)
                    client.signal(signal.SIGKILL)
                expect(server.end(30), 1)


def test_an_interrupted_client_prints_partial_results():
    with Namespaces() as net, Background(net.perf(1, "write_bw")) as server:
        server.await_text("Waiting for client")
        with Background(net.perf(0, "write_bw", "-D", "60", "-f", "0", SERVER)) as client:
            client.await_text("BW average")
            time.sleep(1)
            client.signal(signal.SIGINT)
            done = expect(client.end(20), 1, "interrupted")
            row = [l for l in done.out.splitlines() if re.match(r" 65536 +[1-9]", l)]
            assert len(row) == 1, str(done)


def test_an_interrupted_server_exits_1():
    with Namespaces() as net, Background(net.perf(1, "write_bw")) as server:
        server.await_text("Waiting for client")
        server.signal(signal.SIGINT)
        expect(server.end(10), 1, "interrupted before a client came")


def test_a_persistent_server_serves_one_client_after_the_other():
    with Namespaces() as net, tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "server.json")
        with Background(net.perf(1, "send_bw", "--persistent", "-n", "100", "-s", "2000",
                                 "--data_validation", "--json", file)) as server:
            server.await_text("Waiting for client")
            arguments = ["send_bw", "-n", "100", "-s", "2000", "--data_validation", SERVER]
            for _ in range(3):
                expect(command(net.perf(0, *arguments)), 0)
            # One that is killed costs an error and nothing else.
            with Background(net.perf(0, "send_bw", "-D", "60", "-f", "0", "-s", "2000",
                                     SERVER)) as client:
                client.await_text("BW average")
                client.signal(signal.SIGKILL)
                client.end(10)
            for _ in range(2):
                expect(command(net.perf(0, *arguments)), 0)
            server.signal(signal.SIGINT)
            expect(server.end(20), 1)
        runs = load_json(open(file, encoding="utf-8").read())["sides"][0]["runs"]
        assert [run["passed"] for run in runs] == [True, True, True, False, True, True], runs


def test_a_persistent_server_that_only_saw_passes_exits_0():
    with Namespaces() as net, Background(net.perf(1, "read_bw", "--persistent")) as server:
        server.await_text("Waiting for client")
        expect(command(net.perf(0, "read_bw", "-n", "50", SERVER)), 0)
        server.signal(signal.SIGINT)
        expect(server.end(20), 0)


def raw_clients(net, count, say, seconds):
    """TCP clients that say something and then hang, in namespace 0."""
    script = ("import socket,time,sys\n"
              f"s=[socket.create_connection(('{SERVER}',int(sys.argv[1]))) for _ in range({count})]\n"
              f"[c.sendall({say!r}) for c in s]\nprint('connected',flush=True)\n"
              f"time.sleep({seconds})\n")
    return lambda port: Background(net.inside(0, sys.executable, "-c", script, str(port)))


PORTS = dict(zip(TESTS, range(18515, 18523)))


def test_the_endpoint_serves_all_tests_with_any_size_and_count():
    with Namespaces() as net, tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "endpoint.json")
        with Background(net.endpoint(1, "--json", file)) as endpoint:
            endpoint.await_text("atomic_lat TCP port 18522")
            for name in TESTS:
                sizes = ["2"] if name == "write_lat" else ["8"] if "atomic" in name else \
                    ["64", "100000"]
                for size in sizes:
                    expect(command(net.perf(0, name, "-n", "77", "-s", size, "-p",
                                            str(PORTS[name]), SERVER)), 0)
            for name in ("write_bw", "send_bw"):
                expect(command(net.perf(0, name, "-n", "50", "-q", "5", "-p", str(PORTS[name]),
                                        SERVER)), 0)
            endpoint.signal(signal.SIGTERM)
            done = expect(endpoint.end(20), 0, "stopped: 15 clients, 15 passed, 0 failed")
        report = load_json(open(file, encoding="utf-8").read())
        assert report["schema"] == "rocinante/roce-endpoint/1"
        assert report["clients"]["passed"] == 15, report["clients"]
        assert len(report["services"]) == 8
        assert report["counters"]["transport"]["rx_write_requests"] > 0
        assert "write_bw from 198.18.77.1:" in done.out, str(done)


def test_the_endpoint_validates_data():
    with Namespaces() as net, Background(net.endpoint(1, "--data_validation")) as endpoint:
        endpoint.await_text("TCP port 18522")
        for name in TESTS:
            expect(command(net.perf(0, name, "-n", "50", "-p", str(PORTS[name]),
                                    "--data_validation", SERVER)), 0)
        endpoint.signal(signal.SIGINT)
        done = expect(endpoint.end(20), 0, "8 passed")
        assert done.out.count("no mismatch") >= 5, str(done)


def test_the_endpoint_serves_several_clients_at_a_time():
    with Namespaces() as net, Background(net.endpoint(1)) as endpoint:
        endpoint.await_text("TCP port 18522")
        names = ["write_bw", "write_bw", "read_bw", "send_bw", "send_lat", "atomic_bw"]
        # Seven programs that poll share few CPUs: each may have to wait for its turn.
        clients = [Background(net.perf(0, name, "-D", "3", "-f", "0", "-u", "18", "-p",
                                       str(PORTS[name]), SERVER)) for name in names]
        try:
            endpoint.await_text(f"clients {len(names)}", 30)
            for client in clients:
                expect(client.end(60), 0)
        finally:
            for client in clients:
                client.__exit__()
        endpoint.signal(signal.SIGINT)
        expect(endpoint.end(20), 0, f"{len(names)} passed, 0 failed")


def test_the_endpoint_survives_clients_that_vanish_hang_or_talk_nonsense():
    with Namespaces() as net, tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "endpoint.json")
        with Background(net.endpoint(1, "--json", file)) as endpoint:
            endpoint.await_text("TCP port 18522")
            for name in ("write_bw", "send_bw", "send_lat"):
                with Background(net.perf(0, name, "-D", "60", "-f", "0", "-p", str(PORTS[name]),
                                         SERVER)) as client:
                    client.await_text("t_avg" if name.endswith("lat") else "BW average")
                    client.signal(signal.SIGKILL)
                    client.end(10)
                endpoint.await_text(f"{name} from")
            with raw_clients(net, 3, b"GET / HTTP/1.1\r\n\r\n", 0)(18515) as nonsense:
                nonsense.await_text("connected")
            with raw_clients(net, 20, b"6.06", 30)(18519) as half_open:
                half_open.await_text("connected")
                # Others are served meanwhile, and the silent ones are given up after a while.
                expect(command(net.perf(0, "write_bw", "-n", "50", SERVER)), 0)
                until = time.monotonic() + 25
                while endpoint.output().count("silent") < 20:
                    assert time.monotonic() < until, endpoint.output()
                    time.sleep(0.2)
            expect(command(net.perf(0, "send_bw", "-n", "50", "-p", "18519", SERVER)), 0)
            endpoint.signal(signal.SIGINT)
            expect(endpoint.end(20), 0)
        clients = load_json(open(file, encoding="utf-8").read())["clients"]
        assert clients["passed"] == 2 and clients["failed"] == 26, clients
        assert clients["peers_vanished"] >= 3, clients


def test_a_server_gives_a_half_open_client_up():
    with Namespaces() as net, Background(net.perf(1, "write_bw", "--persistent")) as server:
        server.await_text("Waiting for client")
        with raw_clients(net, 1, b"6.06", 30)(18515) as half_open:
            half_open.await_text("connected")
            server.await_text("silent", 25)
        expect(command(net.perf(0, "write_bw", "-n", "50", SERVER)), 0)


def test_no_icmp_unreachable_answers_roce_on_the_link():
    with Namespaces() as net, tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "x.pcapng")
        with Background(net.perf(1, "send_bw", "-n", "200")) as server:
            server.await_text("Waiting for client")
            expect(command(net.perf(0, "send_bw", "-n", "200", "--capture", file, SERVER)), 0)
            expect(server.end(), 0)
        icmp = command(["tshark", "-r", file, "-Y", "icmp || icmpv6.type == 1"])
        assert icmp.out == "", str(icmp)


if __name__ == "__main__":
    run(globals())
