"""Builds the guest: a kernel and an initramfs, from installed and downloaded Debian packages alone.

image() returns their paths. The kernel package is downloaded once and unpacked under the cache
folder, in a folder named after its version; the initramfs is small and is made anew each time, as
it holds programs that change (verbs_peer).
"""

import gzip
import os
import pathlib
import shutil
import stat
import subprocess

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
GUEST_CACHE = CACHE / "rocinante" / "guest"

# crc32_generic: without it rdma_rxe fails to register its device.
MODULES = ["virtio_pci", "virtio_net", "af_packet", "crc32_generic", "udp_tunnel",
           "ip6_udp_tunnel", "rdma_rxe", "ib_uverbs", "rdma_ucm", "sch_netem", "sch_prio",
           "sch_ingress", "cls_u32", "act_mirred", "ifb"]

TESTS = [f"ib_{op}_{kind}" for op in ("write", "read", "send", "atomic") for kind in ("bw", "lat")]
PROGRAMS = TESTS + ["rdma", "ip", "tc", "ibv_devinfo", "ibv_rc_pingpong", "ibv_uc_pingpong",
                    "ibv_ud_pingpong"]

# Whole paths for ip and tc: the shell prefers its own, smaller ones.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /bin /sbin /usr/bin /usr/sbin /proc /sys /dev /tmp /run
/bin/busybox --install -s /bin
export PATH=/usr/bin:/usr/sbin:/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
for m in $(cat /modules.order); do
  insmod $m $(case $m in *ifb.ko) echo numifbs=1;; esac) || echo "insmod $m failed"
done
/usr/bin/ip link set lo up
ulimit -l unlimited
echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_ra
/usr/bin/ip addr add @GUEST4@/24 dev eth0
/usr/bin/ip addr add @GUEST6@/64 dev eth0 nodad
/usr/bin/ip link set eth0 up
/usr/bin/ip link set ifb0 up
/usr/bin/rdma link add rxe0 type rxe netdev eth0 || echo "rxe failed"
echo guest-ready
exec nc -ll -p 77 -e /agent
"""

# One job per connection: the first line is the command; what it prints comes back, then its status.
AGENT = """#!/bin/busybox sh
export PATH=/usr/bin:/usr/sbin:/bin:/sbin
read -r seconds command
cd /tmp
timeout -s KILL "$seconds" sh -c "$command" </dev/null 2>&1
status=$?
echo
echo "status=$status"
"""


class Unavailable(Exception):
    """The machine lacks something the guest needs; the text says what."""


def _run(arguments, **kwargs):
    done = subprocess.run(arguments, capture_output=True, text=True, **kwargs)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(map(str, arguments))}: {done.stderr.strip()[-300:]}")
    return done.stdout


def kernel_package():
    """The package that linux-image-amd64 stands for, and its version."""
    for line in _run(["apt-cache", "depends", "linux-image-amd64"]).splitlines():
        if line.strip().startswith("Depends: linux-image-"):
            name = line.split()[-1]
            for shown in _run(["apt-cache", "show", name]).splitlines():
                if shown.startswith("Version: "):
                    return name, shown.split()[1]
    raise Unavailable("apt-cache knows no linux-image-amd64; run apt-get update")


def unpack_kernel():
    """The folder the kernel package is unpacked in."""
    name, version = kernel_package()
    folder = GUEST_CACHE / f"{name}_{version}"
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _run(["apt-get", "-q", "download", f"{name}={version}"], cwd=folder)
    package = next(folder.glob("*.deb"))
    _run(["dpkg", "-x", str(package), str(folder)])
    package.unlink()
    release = next((folder / "lib/modules").iterdir()).name
    _run(["depmod", "-b", str(folder), release])
    (folder / "complete").touch()
    return folder


def _module_files(folder):
    release = next((folder / "lib/modules").iterdir()).name
    files = []
    for module in MODULES:
        shown = _run(["modprobe", "--show-depends", "-d", str(folder), "-S", release, module])
        for line in shown.splitlines():
            if line.startswith("insmod "):
                path = line.split()[1]
                if path not in files:
                    files.append(path)
    return files


def _libraries(program):
    paths = set()
    for line in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.splitlines():
        for word in line.split():
            if word.startswith("/"):
                paths.add(word)
    return paths


class Archive:
    """A cpio archive in the newc format."""

    def __init__(self):
        self._parts = []
        self._names = set()
        self._inode = 0

    def _entry(self, name, mode, data):
        self._inode += 1
        raw = name.encode() + b"\0"
        fields = [self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
        self._parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def folder(self, name):
        name = name.strip("/")
        if not name or name in self._names:
            return
        self.folder(os.path.dirname(name))
        self._names.add(name)
        self._entry(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name, data, mode=0o755):
        name = name.strip("/")
        if name in self._names:
            return
        self.folder(os.path.dirname(name))
        self._names.add(name)
        self._entry(name, stat.S_IFREG | mode, data)

    def copy(self, source, name=None):
        self.file(name or str(source), pathlib.Path(source).read_bytes())

    def pack(self):
        self._entry("TRAILER!!!", 0, b"")
        return gzip.compress(b"".join(self._parts), 1)


def image(work, guest4, guest6, extra):
    """Kernel and initramfs paths; extra: programs of ours that go to the guest's /usr/bin."""
    folder = unpack_kernel()
    archive = Archive()
    programs = [shutil.which(name) for name in PROGRAMS]
    if None in programs or not shutil.which("busybox"):
        raise Unavailable("perftest, ibverbs-utils, iproute2 or busybox-static is not installed")
    drivers = sorted(pathlib.Path("/usr/lib/x86_64-linux-gnu/libibverbs").glob("librxe-*.so"))
    libgcc = pathlib.Path("/lib/x86_64-linux-gnu/libgcc_s.so.1")
    libraries = {str(libgcc)} | {str(driver) for driver in drivers}
    for program in programs + [str(path) for path in extra] + [str(d) for d in drivers]:
        libraries |= _libraries(program)
    for name, path in zip(PROGRAMS, programs):
        archive.copy(path, f"usr/bin/{name}")
    for path in extra:
        archive.copy(path, f"usr/bin/{path.name}")
    for library in sorted(libraries):
        archive.copy(library)
    archive.copy("/etc/libibverbs.d/rxe.driver")
    archive.copy(shutil.which("busybox"), "bin/busybox")
    modules = _module_files(folder)
    for module in modules:
        archive.copy(module, "modules/" + os.path.basename(module))
    order = "".join(f"/modules/{os.path.basename(module)}\n" for module in modules)
    archive.file("modules.order", order.encode(), 0o644)
    archive.file("init", INIT.replace("@GUEST4@", guest4).replace("@GUEST6@", guest6).encode())
    archive.file("agent", AGENT.encode())
    archive.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n", 0o644)
    initramfs = pathlib.Path(work) / "initramfs.gz"
    initramfs.write_bytes(archive.pack())
    return next((folder / "boot").glob("vmlinuz-*")), initramfs
