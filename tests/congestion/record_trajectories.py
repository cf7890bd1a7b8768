#!/usr/bin/env python3
"""Records trajectories of the DCQCN reference model for reaction_point_test.cpp.

  record_trajectories.py MODEL.py tables            the fixed event sequences of the model's tables
  record_trajectories.py MODEL.py random SEED N     N random sequences for each set of knobs

Prints one JSON object per line: {"name", "preset", "line_mbps", "knobs", "events", "until_us", "rows"} with events
[[t_us, "cnp"], [t_us, "sent", bytes], ...] and rows [t_us, event, Rc, Rt, alpha, T, BC] as the model computed them.
"""
import importlib.util
import json
import random
import sys


def load(path):
    spec = importlib.util.spec_from_file_location("model", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["model"] = module
    spec.loader.exec_module(module)
    return module


def variants(model):
    """(name, preset of ours, the model's parameters, the same as knobs of ours)"""
    paper, nvidia = model.paper, model.nvidia
    yield "paper", "paper", paper(), {}
    yield "paper, new alpha from 0.5, four steps", "paper", paper(alpha0=.5, alpha_first=True, fr_rule="lt"), {
        "rp_initial_alpha_value": "512", "cut_alpha": "new", "fast_recovery": "below", "hyper_rule": "both_reached"}
    yield "paper, flat hyper increase", "paper", paper(hai_scaled=False, min_rate=100.0), {
        "hai_scaled": "0", "rp_min_rate": "100"}
    yield "paper, small byte counter", "paper", paper(byte_ctr=150_000), {"byte_reset_bytes": "150000"}
    yield "paper, Rt kept until an increase", "paper", paper(clamp="after_inc"), {"rt_on_cut": "after_increase"}
    yield "paper, Rt kept until bytes", "paper", paper(clamp="after_bytes", byte_ctr=1_000_000), {
        "rt_on_cut": "after_bytes", "byte_reset_bytes": "1000000"}
    yield "paper, released", "paper", paper(release=True), {"release": "1"}
    yield "nvidia", "nvidia", nvidia(), {}
    yield "nvidia, real alpha", "nvidia", nvidia(alpha_exact=True), {"alpha_resolution": "real"}
    yield "nvidia, clamp_tgt_rate 1", "nvidia", nvidia(clamp="always"), {"rp_clamp_tgt_rate": "1"}
    yield "nvidia, clamp_tgt_rate_ati 0", "nvidia", nvidia(clamp="after_bytes"), {"rp_clamp_tgt_rate_ati": "0"}
    yield "nvidia, first rate", "nvidia", nvidia(first_rate=85000), {"rp_rate_to_set_on_first_cnp": "85000"}
    yield "nvidia, released", "nvidia", nvidia(release=True), {"release": "1"}
    yield "nvidia, at least 80 % kept", "nvidia", nvidia(min_dec_fac=80), {"rp_min_dec_fac": "80"}
    yield "nvidia, gd 10, 25 us, 20 us", "nvidia", nvidia(gd_log2=10, t_dec=25_000, t_alpha=20_000), {
        "rp_gd": "10", "rp_rate_reduce_monitor_period": "25", "rp_dce_tcp_rtt": "20"}
    yield "nvidia, threshold 5, short timer", "nvidia", nvidia(F=5, t_inc=30_000, byte_ctr=64_000), {
        "rp_threshold": "5", "rp_time_reset": "30", "rp_byte_reset": "1000"}


def record(model, name, preset, params, knobs, events, until_us):
    rows, _ = model.run_rp(params, events, until_us)
    return {"name": name, "preset": preset, "line_mbps": params.line, "knobs": knobs, "events": events,
            "until_us": until_us, "rows": rows}


def tables(model):
    paper, nvidia = ("paper", "paper", model.paper(), {}), ("nvidia", "nvidia", model.nvidia(), {})
    first = ("first rate", "nvidia", model.nvidia(first_rate=85000), {"rp_rate_to_set_on_first_cnp": "85000"})
    real = ("real alpha", "nvidia", model.nvidia(alpha_exact=True), {"alpha_resolution": "real"})

    def cnps(n, gap):
        return [(gap * i, "cnp") for i in range(n)]
    yield "H1", paper, cnps(1, 0), 560
    yield "H2", paper, cnps(10, 50), 1600
    yield "H3", paper, [(0, "cnp"), (300, "cnp")], 700
    yield "H4", nvidia, cnps(1, 0), 2500
    yield "H5", nvidia, cnps(10, 50), 3000
    yield "H6", nvidia, cnps(20, 4), 84
    yield "H7", first, [(0, "cnp"), (100, "cnp")], 1100
    yield "H8", nvidia, cnps(200, 50), 10_000
    yield "H8 real", real, cnps(200, 50), 10_000
    for n in (1, 2, 3, 5, 10):
        yield "H9 n=%d" % n, paper, cnps(n, 50), 60_000
        yield "H9 n=%d" % n, nvidia, cnps(n, 50), 10_000
    for name, which, n, until in (("H10", nvidia, 1, 3000), ("H10", paper, 1, 3000), ("H11", paper, 10, 60_000)):
        yield name, which, greedy_events(model, which[2], n, until), until


def greedy_events(model, params, n, until_us):
    """What the model's always-busy sender does, as events."""
    sent = []

    class Recorder(model.ReactionPoint):
        def on_sent(self, t, size):
            sent.append((t / 1000, "sent", size))
            super().on_sent(t, size)

        def on_cnp(self, t):
            sent.append((t / 1000, "cnp"))
            super().on_cnp(t)
    plain, model.ReactionPoint = model.ReactionPoint, Recorder
    try:
        model.greedy(params, [50 * i for i in range(n)], until_us)
    finally:
        model.ReactionPoint = plain
    return sent


def random_events(rng, line_mbps):
    """Silences, single CNPs, bursts of them and busy stretches, up to some milliseconds."""
    events, t = [], rng.randrange(0, 20_000)
    for _ in range(rng.randrange(3, 60)):
        kind = rng.random()
        if kind < 0.25:
            t += rng.choice((1000, 55_000, 300_000, rng.randrange(1, 2_000_000)))
        elif kind < 0.7:
            for _ in range(rng.choice((1, 1, 2, rng.randrange(1, 12)))):
                events.append((t / 1000, "cnp"))
                t += rng.choice((0, 1000, 4000, 50_000, 55_000, rng.randrange(0, 120_000)))
        else:
            for _ in range(rng.randrange(1, 20)):
                size = rng.choice((64, 1000, 4096, 1_000_000, rng.randrange(1, 3_000_000)))
                events.append((t / 1000, "sent", size))
                t += rng.choice((0, int(size * 8000 / line_mbps), rng.randrange(0, 60_000)))
    return events, (t + rng.randrange(0, 3_000_000)) / 1000


def main(arguments):
    model = load(arguments[0])
    if arguments[1] == "tables":
        for name, (variant, preset, params, knobs), events, until in tables(model):
            print(json.dumps(record(model, "%s (%s)" % (name, variant), preset, params, knobs, events, until)))
        return 0
    rng = random.Random(int(arguments[2]))
    for variant in variants(model):
        for _ in range(int(arguments[3])):
            print(json.dumps(record(model, *variant, *random_events(rng, variant[2].line))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
