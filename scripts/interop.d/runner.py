"""Runs one row: starts both ends, waits, and judges statuses, reports and the capture."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import time

import guest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FIRST_TCP_PORT = 18600

# Counters of roce-perf that move only when a packet was lost and made good.
RECOVERY = ("retransmitted_packets", "packet_seq_err", "implied_nak_seq_err",
            "local_ack_timeout_err", "out_of_sequence", "duplicate_request")

# tshark guesses at what a message holds, by its first bytes: random data then look malformed.
GUESSES = ("smc", "smb_direct", "rpcordma", "nvme-rdma", "lnet", "iser", "infiniband.eoib",
           "infiniband_sdp", "fcoib")


@dataclasses.dataclass
class Outcome:
    passed: bool
    reason: str = ""
    figures: dict = dataclasses.field(default_factory=dict)


class Failed(Exception):
    """The row failed; the text says why."""


class Runner:
    """Runs rows against one guest. program: roce-perf; work: where logs and captures go."""

    def __init__(self, machine, program, work, keep):
        self._guest = machine
        self._program = program
        self._work = pathlib.Path(work)
        self._keep = keep
        self._port = FIRST_TCP_PORT

    def run(self, row):
        attempts = 3 if row.loss else 1
        for attempt in range(attempts):
            outcome = self._once(row, row.iterations * (1 + attempt))
            # Chance may lose nothing: then more packets must go.
            if outcome.passed or outcome.figures.get("lost", 1) != 0:
                break
        return outcome

    def _once(self, row, iterations):
        self._port += 1
        base = self._work / row.name.replace("/", "_").replace(" ", "")
        figures = {}
        start = time.monotonic()
        try:
            self._guest.set_mtu(row.mtu)
            self._guest.set_loss(row.loss)
            self._exchange(row, iterations, base, figures)
            self._judge_report(row, base, figures)
            self._judge_capture(base, figures)
            outcome = Outcome(True, "", figures)
        except Failed as failure:
            outcome = Outcome(False, str(failure), figures)
        figures["seconds"] = round(time.monotonic() - start, 1)
        if outcome.passed and not self._keep:
            for suffix in (".pcapng", ".json", ".ours.log", ".guest.log"):
                pathlib.Path(f"{base}{suffix}").unlink(missing_ok=True)
        return outcome

    def _guest_command(self, row, iterations):
        flags = f"-d rxe0 -x {self._guest.gid_index(row.family)} -p {self._port} -n {iterations}"
        if row.peer == "verbs":
            program = f"verbs_peer {row.test}"
        else:
            program = f"ib_{row.test} -F"
        host = guest.HOST4 if row.role == "server" else ""
        return f"exec {program} {flags} {row.flags} {host}"

    def _our_command(self, row, iterations, base):
        command = ["ip", "netns", "exec", guest.NAMESPACE, str(self._program), row.test,
                   "--port", f"afpacket:{guest.TAP}", "-p", str(self._port),
                   "-n", str(iterations), "--json", f"{base}.json",
                   "--capture", f"{base}.pcapng", *row.flags.split()]
        if row.family == "ipv6":
            command.append("--ipv6")
        if row.peer == "verbs":
            command.append("--data_validation")
        if row.role == "client":
            command.append(guest.GUEST4)
        return command

    def _exchange(self, row, iterations, base, figures):
        """Run both ends to their end; raises Failed unless both succeed."""
        theirs = self._guest_command(row, iterations)
        ours = self._our_command(row, iterations, base)
        job = None
        if row.role == "client":
            job = self._guest.start(theirs, row.seconds)
            self._await_guest_listener()
        with open(f"{base}.ours.log", "wb") as log:
            process = subprocess.Popen(ours, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                if row.role == "server":
                    self._await_our_listener(process)
                    job = self._guest.start(theirs, row.seconds)
                self._await_both(process, job, row.seconds)
            finally:
                if process.poll() is None:
                    process.kill()
                status = process.wait()
        if job.is_alive():
            name = theirs.split()[1]
            self._guest.run(f"killall -KILL {name}; true", 10)
            job.join(15)
        pathlib.Path(f"{base}.guest.log").write_text(job.output)
        if row.loss:
            figures["lost"] = self._guest.lost()
        if status != 0 or job.status != 0:
            end = "killed" if status == -signal.SIGKILL else f"status {status}"
            said = pathlib.Path(f"{base}.ours.log").read_text(errors="replace").strip()
            raise Failed(f"ours: {end}; peer: status {job.status}\n"
                         f"  ours: {' | '.join(said.splitlines()[-3:])}\n"
                         f"  peer: {' | '.join(job.output.strip().splitlines()[-3:])}")

    def _await_guest_listener(self):
        wait = (f"for i in $(seq 200); do netstat -ltn | grep -q ':{self._port} ' && exit 0; "
                "usleep 50000; done; exit 1")
        if self._guest.run(wait, 30)[1] != 0:
            raise Failed("the peer's server did not listen")

    def _await_our_listener(self, process):
        end = time.monotonic() + 20
        while time.monotonic() < end and process.poll() is None:
            listening = subprocess.run(["ss", "-Hltn", f"sport = :{self._port}"],
                                       capture_output=True, text=True, check=False)
            if listening.stdout.strip():
                return
            time.sleep(0.1)
        raise Failed("our server did not listen: " + f"status {process.poll()}")

    @staticmethod
    def _await_both(process, job, seconds):
        """Wait for both; when one has failed the other gets five seconds more."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ours_done, theirs_done = process.poll() is not None, not job.is_alive()
            if ours_done and theirs_done:
                return
            if (ours_done and process.returncode != 0) or (theirs_done and job.status != 0):
                end = min(end, time.monotonic() + 5)
                seconds = 0
                while time.monotonic() < end:
                    if process.poll() is not None and not job.is_alive():
                        return
                    time.sleep(0.05)
                return
            time.sleep(0.05)

    @staticmethod
    def _judge_report(row, base, figures):
        report = json.loads(pathlib.Path(f"{base}.json").read_text())
        if not report["passed"] or report["errors"]:
            raise Failed(f"our report says: {report['errors']}")
        side = report["sides"][0]
        mtu = side["runs"][0]["plan"]["mtu_bytes"]
        if mtu != (1024 if row.mtu == 1500 else 4096):
            raise Failed(f"path MTU {mtu}")
        results = side["runs"][0]["results"]
        last = results[-1].get("local") if results else None
        if last and "average_gbps" in last:
            figures["gbps"] = round(last["average_gbps"], 4)
        counters = side["counters"]["transport"]
        figures["sent_pkts"], figures["rcvd_pkts"] = counters["sent_pkts"], counters["rcvd_pkts"]
        if row.loss:
            moved = {name: counters[name] for name in RECOVERY if counters[name]}
            figures["recovery"] = moved
            if figures["lost"] == 0:
                raise Failed("netem lost nothing")
            # An ACK that is lost is made good by the next one, without a trace at the responder.
            heals_unseen = (row.role == "server" and row.loss == "in"
                            and row.test.split("_")[0] in ("write", "send"))
            if not moved and not heals_unseen:
                raise Failed(f"{figures['lost']} packets lost, but no counter of ours moved")
        if row.peer == "verbs":
            figures["validation"] = side["runs"][0]["validation"]
            if figures["validation"] is None:
                raise Failed("our report holds no validation")

    @staticmethod
    def _judge_capture(base, figures):
        capture = f"{base}.pcapng"
        checks = [[str(HERE / "icrc_check"), capture]]
        shared = pathlib.Path(os.environ.get("ROCE_SHARED", ROOT.parent / "shared"))
        oracle = shared / "oracles" / "icrc_check.py"
        for check in checks:
            done = subprocess.run(check, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Failed(f"ICRC: {done.stdout.strip()[-300:]}{done.stderr.strip()[-300:]}")
            figures["packets"] = int(done.stdout.splitlines()[-1].split(": ")[1].split()[0])
        if oracle.exists():
            done = subprocess.run(["python3", str(oracle), capture], capture_output=True, text=True,
                                  check=False)
            if f"icrc={{'ok': {figures['packets']}}}" not in done.stdout:
                raise Failed(f"second ICRC check: {done.stdout.strip()[:300]}")
        quiet = [word for name in GUESSES for word in ("--disable-protocol", name)]
        done = subprocess.run(["tshark", "-n", *quiet, "-r", capture, "-Y", "_ws.malformed"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"tshark: {done.stderr.strip()[-300:]}")
        if done.stdout.strip():
            raise Failed(f"tshark finds malformed: {done.stdout.splitlines()[0][:200]}")
