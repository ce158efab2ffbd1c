"""Timing and output of the peers. One JSON line each:

    {"w": workload, "peer": name, "threads": T, "s": median seconds, "min": seconds, "n": runs}
"""
import fnmatch, json, os, statistics, sys, time

LONG, SLOW = 0.5, 2.5  # seconds of one run that a turn needs no second of; that has no further turn


def measure(fn, budget=1.0, warm=0.25, least=5):
    """Median and minimum seconds of fn() over about `budget` seconds, after a warm-up."""
    t = time.perf_counter(); fn(); one = max(time.perf_counter() - t, 1e-9)
    if one > LONG:
        return one, one, 1
    t = time.perf_counter()
    while time.perf_counter() - t < warm:
        fn()
    # batch short calls so that the clock is not what is measured
    t = time.perf_counter(); fn(); one = max(time.perf_counter() - t, 1e-9)
    batch = max(1, int(2e-4 / one))
    runs, t0 = [], time.perf_counter()
    while len(runs) < least or time.perf_counter() - t0 < budget:
        t = time.perf_counter()
        for _ in range(batch):
            fn()
        runs.append((time.perf_counter() - t) / batch)
        if len(runs) >= 2000:
            break
    return statistics.median(runs), min(runs), len(runs)


def failure(workload, peer, threads, e):
    text = str(e).splitlines()[0][:160] if str(e) else type(e).__name__
    return {"w": workload, "peer": peer, "threads": threads, "error": text}


def emit(workload, peer, threads, fn, **more):
    try:
        med, low, n = measure(fn)
        line = {"w": workload, "peer": peer, "threads": threads, "s": med, "min": low, "n": n}
    except Exception as e:  # a peer that cannot do the work is a result too
        line = failure(workload, peer, threads, e)
    line.update(more)
    print(json.dumps(line), flush=True)


def wanted(name, patterns):
    return not patterns or any(fnmatch.fnmatch(name, p) for p in patterns)


def serve(workloads, prepared, peer, threads):
    """Requests 'name seconds' from standard input; the last workload is kept prepared. An unknown
    name is answered by {}. What libraries print goes to standard error."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    now, fn, first = None, None, 0.0
    for request in sys.stdin:
        name, seconds = request.split()
        if name not in workloads:
            print("{}", file=answer, flush=True)
            continue
        try:
            if name != now:
                now, fn = None, None  # frees the last one's memory first
                fn, first = prepared(name)
                now = name
            med, low, n = measure(fn, float(seconds), min(0.1, float(seconds)), 3)
            line = {"w": name, "peer": peer, "threads": threads, "s": med, "min": low, "n": n, "first": first}
            line.update(getattr(fn, "more", {}))
            if med > SLOW:
                line["slow"] = True
        except Exception as e:
            line = failure(name, peer, threads, e)
        print(json.dumps(line), file=answer, flush=True)


def answer(workloads, prepared, peer, args):
    """As the program was asked: line by line (--serve), or all that its patterns name, one after the other."""
    if args.serve:
        return serve(workloads, prepared, peer, args.threads)
    for name in workloads:
        if wanted(name, args.patterns):
            fn, first = prepared(name)
            emit(name, peer, args.threads, fn, first=first)


def cold(name, peer, threads, build):
    """Seconds from the start of the process (BENCH_START, on the monotonic clock) to the first result
    and to the end of the first run that takes at most 1.1 times the median of the later half."""
    start = float(os.environ["BENCH_START"])
    runs, ends, fn = [], [], build()
    while len(runs) < 20 or (ends[-1] - ends[0] < 1 and len(runs) < 2000):
        t = time.monotonic(); fn(); ends.append(time.monotonic()); runs.append(ends[-1] - t)
    med = statistics.median(runs[len(runs) // 2:])
    full = next(e for e, r in zip(ends, runs) if r <= 1.1 * med)
    print(json.dumps({"w": name, "peer": peer, "threads": threads, "cold": "fresh process",
                      "first": ends[0] - start, "full": full - start, "s": med}), flush=True)
