"""The rows of the matrix: what runs against what, and how."""

import dataclasses

OPERATIONS = ("write", "read", "send", "atomic")
SIZES = tuple(range(1, 10)) + (1023, 1024, 1025, 4095, 4096, 4097, 65536, 1 << 20)


@dataclasses.dataclass(frozen=True)
class Row:
    """One run of one test between the guest and this host."""

    test: str                # as roce-perf names it: write_bw ...
    role: str                # ours: "client" or "server"
    peer: str = "stock"      # "stock": perftest; "verbs": verbs_peer, with data validation
    family: str = "ipv4"     # of the GIDs
    mtu: int = 4200          # of the wire; 1500 makes the path MTU 1024
    flags: str = ""          # given to both ends
    iterations: int = 20
    loss: str = ""           # "out": of what the guest sends, "in": of what it gets; 1 %
    quick: bool = False      # part of --quick
    seconds: int = 60        # limit of the whole row

    @property
    def name(self):
        parts = [self.peer, self.test, f"our-{self.role}", self.family,
                 "mtu1024" if self.mtu == 1500 else "mtu4096"]
        if self.flags:
            parts.append(self.flags.replace("--", "").replace("-", "").replace(" ", ""))
        if self.loss:
            parts.append(f"loss-{self.loss}")
        return "/".join(parts)


def _both(**settings):
    return [Row(role=role, **settings) for role in ("client", "server")]


def _stock_rows():
    rows = []
    for operation in OPERATIONS:
        for kind in ("bw", "lat"):
            rows += _both(test=f"{operation}_{kind}", quick=True)
    for operation in OPERATIONS:
        rows += _both(test=f"{operation}_bw", mtu=1500, quick=operation in ("write", "read"))
        rows += _both(test=f"{operation}_lat", mtu=1500)
    for operation in OPERATIONS:
        rows += _both(test=f"{operation}_bw", family="ipv6", quick=operation in ("write", "send"))
        rows += _both(test=f"{operation}_lat", family="ipv6")
    for operation in ("write", "read", "send"):
        rows += _both(test=f"{operation}_bw", flags="-q 8", quick=operation == "write")
        rows += _both(test=f"{operation}_bw", flags="-b", quick=operation == "send")
        rows += _both(test=f"{operation}_bw", flags="-a", iterations=5, seconds=180)
        rows += _both(test=f"{operation}_lat", flags="-a", iterations=5, seconds=180)
    rows += _both(test="atomic_bw", flags="-q 8")
    rows += _both(test="atomic_bw", flags="-A CMP_AND_SWAP")
    for connection in ("UC", "UD"):
        size = " -s 1024" if connection == "UD" else ""
        rows += _both(test="send_bw", flags=f"-c {connection}{size}", quick=True)
        rows += _both(test="send_lat", flags=f"-c {connection}")
    rows += _both(test="write_bw", flags="-c UC")
    rows += _both(test="write_lat", flags="-c UC")
    for operation in ("write", "read", "send"):
        for size in SIZES:
            rows += _both(test=f"{operation}_bw", flags=f"-s {size}", iterations=5,
                          quick=size == 4097 and operation == "read")
    return rows


def _loss_rows(peer):
    rows = []
    for operation in OPERATIONS:
        for loss in ("out", "in"):
            # One packet per atomic: many are needed for one to be lost.
            iterations = 500 if operation == "atomic" else 60
            rows += _both(peer=peer, test=f"{operation}_bw", loss=loss, iterations=iterations,
                          mtu=1500, quick=operation in ("write", "read") and loss == "in",
                          seconds=120)
    return rows


def _verbs_rows():
    rows = []
    for operation in OPERATIONS:
        rows += _both(peer="verbs", test=f"{operation}_bw", quick=True)
        rows += _both(peer="verbs", test=f"{operation}_bw", mtu=1500, flags="-q 4")
        rows += _both(peer="verbs", test=f"{operation}_bw", family="ipv6")
    for operation in ("write", "read", "send"):
        for size in (1, 3, 1025, 4097):
            rows += _both(peer="verbs", test=f"{operation}_bw", flags=f"-s {size}")
    return rows


def all_rows():
    """Every row, in the order in which they run: rows of one wire MTU stay together."""
    rows = _stock_rows() + _loss_rows("stock") + _verbs_rows() + _loss_rows("verbs")
    return sorted(rows, key=lambda row: (row.loss, row.mtu))
