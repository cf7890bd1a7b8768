"""The guest at work: its network on this host, booting, jobs, packet loss.

Network: a tap in a network namespace of its own; the host side has HOST4 and HOST6, the guest
GUEST4 and GUEST6. Jobs run over TCP through the same tap; loss hits UDP only, so that jobs and
perftest's exchange are spared.
"""

import ctypes
import os
import pathlib
import re
import socket
import subprocess
import threading
import time

import guest_image

NAMESPACE = "roce-iop"
TAP = "roceiop0"
HOST4, GUEST4 = "198.18.77.1", "198.18.77.2"
HOST6, GUEST6 = "fd00:77::1", "fd00:77::2"
WIRE_MTU = 4200
AGENT_PORT = 77
BOOT_SECONDS = 120


def _ip(*arguments, check=True):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise guest_image.Unavailable(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def make_network():
    """Make the namespace and the tap, after removing what a killed run left."""
    remove_network()
    _ip("netns", "add", NAMESPACE)
    inside = ("-n", NAMESPACE)
    _ip(*inside, "link", "set", "lo", "up")
    _ip(*inside, "tuntap", "add", TAP, "mode", "tap")
    subprocess.run(["ip", "netns", "exec", NAMESPACE, "sysctl", "-qw",
                    f"net.ipv6.conf.{TAP}.accept_dad=0"], check=False, capture_output=True)
    _ip(*inside, "link", "set", TAP, "mtu", str(WIRE_MTU), "up")
    _ip(*inside, "addr", "add", f"{HOST4}/24", "dev", TAP)
    _ip(*inside, "addr", "add", f"{HOST6}/64", "dev", TAP, "nodad")


def remove_network():
    """End what runs in the namespace, and remove it. The name is ours alone."""
    if NAMESPACE not in _ip("netns", "list", check=False).split():
        return
    pids = _ip("netns", "pids", NAMESPACE, check=False).split()
    for pid in pids:
        if int(pid) != os.getpid():
            subprocess.run(["kill", "-KILL", pid], check=False, capture_output=True)
    _ip("netns", "del", NAMESPACE, check=False)


def enter_network():
    """Put this thread in the namespace, so that its sockets reach the guest."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/var/run/netns/{NAMESPACE}", "rb") as handle:
        if libc.setns(handle.fileno(), 0x40000000) != 0:  # CLONE_NEWNET
            raise guest_image.Unavailable(f"setns: {os.strerror(ctypes.get_errno())}")


class GuestDied(Exception):
    """The guest does not answer."""


class Job(threading.Thread):
    """A command in the guest. After join(): output and status (None: no answer in time)."""

    def __init__(self, command, seconds):
        super().__init__(daemon=True)
        self.command, self.seconds = command, seconds
        self.output, self.status = "", None
        self._socket = socket.create_connection((GUEST4, AGENT_PORT), timeout=10)
        self.start()

    def run(self):
        data = b""
        try:
            self._socket.settimeout(self.seconds + 10)
            self._socket.sendall(f"{self.seconds} {self.command}\n".encode())
            while chunk := self._socket.recv(65536):
                data += chunk
        except OSError:
            pass
        finally:
            self._socket.close()
        text = data.decode(errors="replace")
        match = re.search(r"\nstatus=(\d+)\n$", text)
        self.output = text[:match.start()] if match else text
        self.status = int(match.group(1)) if match else None


class Guest:
    """One boot of the guest. Make it before enter_network(): packages come from outside."""

    def __init__(self, work, extra_programs):
        self._work = pathlib.Path(work)
        self._image = guest_image.image(self._work, GUEST4, GUEST6, extra_programs)
        self._qemu = None
        self._mtu = WIRE_MTU
        self._loss = ""
        self._gids = {}

    def boot(self):
        kernel, initramfs = self._image
        console = open(self._work / "console.log", "ab")
        command = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "700",
                   "-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
                   "-kernel", str(kernel), "-initrd", str(initramfs),
                   "-append", "console=ttyS0 quiet panic=-1",
                   "-netdev", f"tap,id=n0,ifname={TAP},script=no,downscript=no",
                   "-device", f"virtio-net-pci,netdev=n0,host_mtu={WIRE_MTU}"]
        self._qemu = subprocess.Popen(["ip", "netns", "exec", NAMESPACE, *command],
                                      stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        console.close()
        _ip("-n", NAMESPACE, "link", "set", TAP, "mtu", str(WIRE_MTU))
        self._mtu, self._loss, self._gids = WIRE_MTU, "", {}
        end = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < end:
            if self._qemu.poll() is not None:
                break
            try:
                if self.run("test -d /sys/class/infiniband/rxe0 && echo up", 10)[1] == 0:
                    return
            except (OSError, GuestDied):
                time.sleep(0.5)
        raise guest_image.Unavailable(f"the guest did not come up, see {self._work}/console.log")

    def stop(self):
        if self._qemu and self._qemu.poll() is None:
            self._qemu.kill()
            self._qemu.wait()
        self._qemu = None

    def alive(self):
        try:
            return self.run("echo alive", 10)[1] == 0
        except (OSError, GuestDied):
            return False

    def start(self, command, seconds=60):
        return Job(command, seconds)

    def run(self, command, seconds=60):
        """(output, status) of a command."""
        job = Job(command, seconds)
        job.join(seconds + 15)
        if job.status is None:
            raise GuestDied(f"no answer to: {command}")
        return job.output, job.status

    def set_mtu(self, mtu):
        """The MTU of both ends of the wire: 1500 makes the path MTU 1024, 4200 makes it 4096."""
        if mtu == self._mtu:
            return
        _ip("-n", NAMESPACE, "link", "set", TAP, "mtu", str(mtu))
        self.run(f"/usr/bin/ip link set eth0 mtu {mtu}")
        self._mtu = mtu

    def set_loss(self, direction, percent=1):
        """Lose UDP packets: direction "" (none), "out" (what the guest sends) or "in"."""
        if not direction and not self._loss:
            return
        self._loss = direction
        commands = ["/usr/bin/tc qdisc del dev eth0 root", "/usr/bin/tc qdisc del dev eth0 ingress",
                    "/usr/bin/tc qdisc del dev ifb0 root"]
        self.run("; ".join(f"{command} 2>/dev/null" for command in commands) + "; true")
        matches = [("ip", "match ip protocol 17 0xff"), ("ipv6", "match ip6 protocol 17 0xff")]
        if direction == "out":
            steps = ["/usr/bin/tc qdisc add dev eth0 root handle 1: prio",
                     f"/usr/bin/tc qdisc add dev eth0 parent 1:3 handle 30: netem loss {percent}%"]
            steps += [f"/usr/bin/tc filter add dev eth0 parent 1: protocol {protocol} prio {i + 1} u32 "
                      f"{match} flowid 1:3" for i, (protocol, match) in enumerate(matches)]
        elif direction == "in":
            steps = [f"/usr/bin/tc qdisc add dev ifb0 root netem loss {percent}%",
                     "/usr/bin/tc qdisc add dev eth0 handle ffff: ingress"]
            steps += [f"/usr/bin/tc filter add dev eth0 parent ffff: protocol {protocol} prio {i + 1} u32 "
                      f"{match} action mirred egress redirect dev ifb0"
                      for i, (protocol, match) in enumerate(matches)]
        else:
            return
        output, status = self.run(" && ".join(steps))
        if status != 0:
            raise GuestDied(f"netem: {output}")

    def lost(self):
        """How many packets netem has dropped."""
        output, _ = self.run("/usr/bin/tc -s qdisc show dev eth0; /usr/bin/tc -s qdisc show dev ifb0")
        total = 0
        for part in re.split(r"(?=^qdisc )", output, flags=re.M):
            if part.startswith("qdisc netem"):
                total += int(re.search(r"dropped (\d+)", part).group(1))
        return total

    def gid_index(self, family):
        """The index of the RoCEv2 GID that stands for GUEST4 ("ipv4") or GUEST6 ("ipv6")."""
        if family in self._gids:
            return self._gids[family]
        output, _ = self.run("cd /sys/class/infiniband/rxe0/ports/1/gids; grep -v 0000:0000:0000:0000:0000:0000:0000:0000 *")
        wanted = "0000:0000:0000:0000:0000:ffff:c612:4d02"
        if family == "ipv6":
            wanted = "fd00:0077:0000:0000:0000:0000:0000:0002"
        for line in output.splitlines():
            index, _, gid = line.partition(":")
            if gid.strip() == wanted:
                self._gids[family] = int(index)
                return int(index)
        raise GuestDied(f"no {family} GID in:\n{output}")
