#!/usr/bin/env python3
"""The distribution of ratios of a run of drawn workloads, and its worst rows with jot's profile of each.

    bench/report/drawn.py LINES DRAWN [BENCH]    the .jsonl of bench, the drawn lines, bench (for profiles)
"""
import json, math, os, statistics, subprocess, sys

WORST = 20


def read(path):
    """(name, threads) -> peer -> its answers put together; and what failed."""
    rows, failed = {}, []
    for line in open(path):
        a = json.loads(line)
        if "error" in a:
            failed.append(f"{a['w']} {a['peer']}/{a['threads']}: {a['error']}")
            continue
        if a.get("values"):
            failed.append(f"{a['w']} values/{a['threads']}: {a['values']}")
        row = rows.setdefault((a["w"], a["threads"]), {}).setdefault(a["peer"], dict(a))
        row["min"] = min(row["min"], a["min"])
        row["checked"] = row.get("checked", False) or a.get("values") == ""
    return rows, failed


def spread(name, ratios):
    if not ratios:
        return
    r = sorted(ratios)
    at = lambda p: r[min(len(r) - 1, int(p * len(r)))]
    print(f"| {name} | {len(r)} | {math.exp(statistics.mean(map(math.log, r))):.2f} | {sum(x < 1 for x in r) / len(r):.0%} | "
          f"{sum(x < .8 for x in r) / len(r):.0%} | " + " | ".join(f"{at(p):.2f}" for p in (.01, .05, .25, .5, .75, .95)) + " |")


def table(title, groups):
    print(f"\n| {title} | rows | geometric mean | under 1.0 | under 0.8 | 1 % | 5 % | 25 % | 50 % | 75 % | 95 % |\n" + "|---" * 11 + "|")
    for name, ratios in groups.items():
        spread(name, ratios)


def grouped(ratio, key):
    groups = {}
    for (name, threads), r in sorted(ratio.items(), key=lambda x: key(*x[0])):
        groups.setdefault(key(name, threads), []).append(r)
    return groups


def main(path, drawn, bench=None):
    rows, failed = read(path)
    steps = dict(line.split(" ", 1) for line in open(drawn))
    peers = sorted({p for row in rows.values() for p in row if p != "jot"})
    own = lambda name: name.replace("_compiled", "")
    for peer in peers:
        both = {k: row for k, row in rows.items() if "jot" in row and peer in row}
        ratio = {k: row[peer]["min"] / row["jot"]["min"] for k, row in both.items()}
        print(f"\n## {peer} / jot, least times: above 1 jot is faster\n")
        table("way, threads", grouped(ratio, lambda n, t: ("compiled, " if "_compiled" in n else "built anew, ") + str(t)))
        anew = {k: r for k, r in ratio.items() if "_compiled" not in k[0]}
        table("kind, built anew", grouped(anew, lambda n, t: " ".join(n.split("_")[3:])))
        table("dtype, built anew", grouped(anew, lambda n, t: steps[n].split()[0]))
        plan = sorted(row["jot"]["plan"] / row["jot"]["min"] for row in both.values() if "plan" in row["jot"])
        if plan:
            print(f"\nA first plan, compilers included, takes {plan[len(plan) // 2]:.0f} settled runs (median); "
                  f"a tenth of the rows over {plan[len(plan) * 9 // 10]:.0f}.")
        print(f"\nThe worst {WORST}:\n\n| row | threads | {peer} / jot | jot us | {peer} us | first plan ms | values |\n" + "|---" * 7 + "|")
        worst = sorted(ratio, key=ratio.get)[:WORST]
        for k in worst:
            j = both[k]["jot"]
            print(f"| {k[0]} | {k[1]} | {ratio[k]:.2f} | {j['min'] * 1e6:.1f} | {both[k][peer]['min'] * 1e6:.1f} | "
                  f"{j.get('plan', 0) * 1e3:.0f} | {'compared' if both[k][peer]['checked'] else 'not compared'} |")
        for name, threads in worst:
            print(f"\n{name}, {threads} threads:\n\n    {steps[own(name)].strip()}\n")
            if bench:
                out = subprocess.run([bench, "--profile", name, str(threads)], capture_output=True, text=True,
                                     env={**os.environ, "BENCH_DRAWN": drawn}).stdout
                print("".join("    " + line + "\n" for line in out.splitlines()))
    print(f"\n{len(failed)} failures, wrong values among them:\n" + "".join(f"\n- {f}" for f in failed))
    return any(" values/" in f for f in failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
