#!/usr/bin/env python3
"""The bench on every machine it was kept of, and the worst rows over all of them.

    bench/report/machines.py --keep FILE LINES...   the .jsonl of bench, into a line a row (docs/machines/NAME.jsonl)
    bench/report/machines.py FILE...                the worst rows over all of these, in Markdown

A row keeps the least times of jot and of each peer on as many threads, and its floor, in seconds; what was kept
before stays where LINES have no such row. The first line says which machine it is.
"""
import json, math, os, statistics, sys

WORST, FAR = 25, 0.5
FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8", "asimd", "asimddp", "sve")


def machine():
    info = dict(line.split(":", 1) for line in open("/proc/cpuinfo") if ":" in line)
    info = {k.strip(): v.strip() for k, v in info.items()}
    flags = (info.get("flags") or info.get("Features") or "").split()
    number = lambda k: info.get(k, "?")
    name = info.get("model name") or f"{number('CPU implementer')} {number('CPU part')}"
    return {"machine": f"{name}, family {number('cpu family')} model {number('model')}, {os.cpu_count()} cores",
            "features": [f for f in FEATURES if f in flags]}


def read(path):
    """What machine, and (workload, threads) -> its line."""
    lines = [json.loads(line) for line in open(path)] if os.path.exists(path) else []
    return lines[0] if lines else None, {(a["w"], a["threads"]): a for a in lines[1:]}


def keep(path, sources):
    head, rows = read(path)
    least = {}
    for source in sources:
        for line in open(source):
            a = json.loads(line)
            if "min" in a and a["peer"] != "jot-before":
                row = least.setdefault((a["w"], a["threads"]), {"w": a["w"], "threads": a["threads"], "s": {}})
                row["s"][a["peer"]] = min(a["min"], row["s"].get(a["peer"], math.inf))
                if a["peer"] == "jot" and a.get("floor"):
                    row["floor"] = a["floor"]
    rows.update((k, r) for k, r in least.items() if "jot" in r["s"])
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as f:
        print(json.dumps(machine()), file=f)
        for _, row in sorted(rows.items()):
            row["s"] = {p: float(f"{s:.4g}") for p, s in sorted(row["s"].items())}
            print(json.dumps(row), file=f)


def ratio(row):
    """The fastest peer that was asked for the same; nothing: there was none."""
    peers = {p: s for p, s in row["s"].items() if p not in ("jot", "onednn")}
    best = min(peers, key=peers.get, default=None)
    return best and (peers[best] / row["s"]["jot"], best)


def report(paths):
    rows = []
    print("| machine | rows | ahead | geometric mean | under 0.8 |\n|---|---|---|---|---|")
    for path in paths:
        head, kept = read(path)
        name = os.path.basename(path).rsplit(".", 1)[0]
        found = [(ratio(r), name, r) for r in kept.values()]
        r = [x[0][0] for x in found if x[0]]
        rows += found
        mean = math.exp(statistics.mean(map(math.log, r))) if r else math.nan
        print(f"| {name}: {head['machine']} | {len(r)} | {sum(x >= 1 for x in r)} | {mean:.2f} | {sum(x < .8 for x in r)} |")
    print("\n| behind | machine | threads | jot, ms | fastest peer / jot | floor / jot |\n|---|---|---|---|---|---|")
    share = lambda r: f"{r['floor'] / r['s']['jot']:.2f}" if r.get("floor") else ""
    for (x, peer), name, r in sorted((f for f in rows if f[0] and f[0][0] < 1), key=lambda f: f[0][0])[:WORST]:
        print(f"| {r['w']} | {name} | {r['threads']} | {1e3 * r['s']['jot']:.4g} | {x:.2f} {peer} | {share(r)} |")
    far = [f for f in rows if f[2].get("floor") and f[2]["floor"] / f[2]["s"]["jot"] < FAR]
    print(f"\nUnder {FAR} of the floor: " + ", ".join(f"{r['w']}/{r['threads']} {name} {share(r)}" for _, name, r in
          sorted(far, key=lambda f: f[2]["floor"] / f[2]["s"]["jot"])[:WORST]) + ".")


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "--keep":
        keep(sys.argv[2], sys.argv[3:])
    elif len(sys.argv) > 1 and not sys.argv[1].startswith("--"):
        report(sys.argv[1:])
    else:
        sys.exit(__doc__)
