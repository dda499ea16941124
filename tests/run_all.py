"""Runs every suite and adds up: what `make test`, `make test-long` and `make fuzz` call.

    tests/run_all.py [--long] [--only SUITE[,SUITE…]] [--fuzz-seconds N]

Each suite is a function that yields (name, outcome, reason); its counts and every skip and failure are
printed by name. The last line is "N passed, N failed, N skipped"; the exit status is 1 if any failed.
Needs what tools/setup.sh test installs, and pytest: the Makefile runs it in build/venv.
"""
import argparse
import concurrent.futures
import functools
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
E2E = os.path.join(ROOT, "tests", "e2e")
LOGS = os.path.join(ROOT, "build", "test-logs")
CPUS = len(os.sched_getaffinity(0))
WORKERS = CPUS + 1  # many tests wait for the program they look at
SANITIZED = {
    "PYROMETER_SANITIZED": "1",
    "ASAN_OPTIONS": "exitcode=99:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:exitcode=99",
}
# Suites that are about the sources and not about the binary: once is enough.
SOURCE_TESTS = ["test_layers.py", "test_format_doc.py", "test_versions.py", "test_wheel.py", "test_completion.py", "test_package.py",
                "test_run_all.py"]

TSAN_TESTS = ["sink_threads", "ring", "memory_rings", "progress"]

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def logged(name, command, env=None, **kwargs):
    """Runs a command into a log; on failure its end is shown. Returns the exit status."""
    os.makedirs(LOGS, exist_ok=True)
    path = os.path.join(LOGS, name + ".log")
    with open(path, "ab") as log:
        log.write(("$ %s\n" % " ".join(command)).encode())
        log.flush()
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                env=dict(os.environ, **(env or {})), **kwargs).returncode
    if status:
        with open(path, encoding="utf-8", errors="replace") as log:
            print("".join(log.readlines()[-40:]), end="")
        print("(the whole of it: %s)" % os.path.relpath(path, ROOT))
    return status


# --- building ---


@functools.lru_cache(maxsize=None)
def build(folder, *options, compiler=None, targets=()):
    """Configures a build folder if need be and builds it (or only these targets). True if that worked. Once is enough."""
    path = os.path.join(ROOT, folder)
    env = {"CC": compiler} if compiler else {}
    if os.path.exists(os.path.join(path, "build.ninja")):
        status = logged(folder, ["meson", "configure", path, *options], env, cwd=ROOT)
    else:
        status = logged(folder, ["meson", "setup", path, *options], env, cwd=ROOT)
    return status == 0 and logged(folder, ["ninja", "-C", path, *targets], env, cwd=ROOT) == 0


def build_plain():
    return build("build", "-Dwerror=true")


def build_sanitized():
    """With clang, ASan, UBSan, and what the fuzzers want to be told: one build for clang's warnings, the fuzzers and the sanitized
    tests. -O1 is quicker to compile, and most tests hardly feel it."""
    return build("build-sanitized", "-Dwerror=true", "-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false",
                 "-Doptimization=1", compiler="clang")


def build_tsan():
    return build("build-tsan", "-Db_sanitize=thread", "-Db_lundef=false",
                 targets=("libpyrometer-agent.so", *["tests/test_" + t for t in TSAN_TESTS]))


def outcome(good):
    return PASSED if good else FAILED


def suite_build(_):
    """gcc and clang, warnings are errors."""
    with concurrent.futures.ThreadPoolExecutor() as pool:  # while one is configured, on one CPU, another compiles
        plain, clang, tsan = (pool.submit(f) for f in (build_plain, build_sanitized, build_tsan))
        yield "gcc -Werror", outcome(plain.result()), ""
        yield "clang -Werror", outcome(clang.result()), ""
        yield "gcc -fsanitize=thread", outcome(tsan.result()), ""


# --- unit tests ---


def unit(folder, env=None, only=()):
    """meson's tests in a build folder; cmocka's cases are counted one by one where they tell."""
    path = os.path.join(ROOT, folder)
    os.makedirs(LOGS, exist_ok=True)
    with open(os.path.join(LOGS, "unit-%s.log" % folder), "wb") as log:
        subprocess.run(["meson", "test", "-C", path, "--no-rebuild", "--print-errorlogs", *(["--timeout-multiplier", "5"] if env else []), *only], stdin=subprocess.DEVNULL, stdout=log,
                       stderr=subprocess.STDOUT, env=dict(os.environ, **(env or {})))
    try:
        with open(os.path.join(path, "meson-logs", "testlog.json"), encoding="utf-8") as f:
            tests = [json.loads(line) for line in f]
    except OSError:
        tests = []
    if not tests:
        yield "unit tests of %s" % folder, FAILED, "none ran: see build/test-logs/unit-%s.log" % folder
    for test in tests:
        name = test["name"].split(" / ")[-1]
        text = test.get("stdout", "") + test.get("stderr", "")
        cases = re.findall(r"\[\s+(OK|FAILED|SKIPPED)\s+\] (\w+)", text)
        # a case that failed is listed twice: where it happened and in the end
        told = dict((case, how) for how, case in cases)
        for case, how in told.items():
            yield "%s: %s" % (name, case), {"OK": PASSED, "FAILED": FAILED, "SKIPPED": SKIPPED}[how], ""
        broken = test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")
        if broken:
            print(text[-3000:])
        if not told or broken and "FAILED" not in told.values():
            yield name, FAILED if broken else SKIPPED if test["result"] == "SKIP" else PASSED, test["result"]


def suite_unit(_):
    """cmocka."""
    if not build_plain():
        yield "build", FAILED, "see above"
        return
    yield from unit("build")


# --- end to end ---


def run_pytest(name, arguments, env):
    """{(classname, name): (outcome, why)} of one run of pytest."""
    report = os.path.join(LOGS, name + ".xml")
    os.makedirs(LOGS, exist_ok=True)
    if os.path.exists(report):
        os.unlink(report)
    subprocess.run([sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-r", "f", "--junitxml", report, *arguments],
                   stdin=subprocess.DEVNULL, cwd=ROOT, env=dict(os.environ, **(env or {})))
    try:
        cases = list(ElementTree.parse(report).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []
    found = {}
    for case in cases:
        skip = case.find("skipped")
        key = (case.get("classname", ""), case.get("name"))
        if case.find("failure") is not None or case.find("error") is not None:
            found[key] = FAILED, ""
        elif skip is not None:
            found[key] = SKIPPED, skip.get("message", "")
        elif key not in found:
            found[key] = PASSED, ""
    return found


MANY = 25  # failures that are no accident any more


def pytest(name, arguments, env=None):
    """Runs the tests. What failed gets a second try alone on the machine, for some of the truths are statistical and a
    busy machine spoils them; what passes then is named. What is marked strict (counts, stacks, bytes) holds on any machine
    and has one try: something that goes wrong once in a hundred runs would pass the second time."""
    found = run_pytest(name, [E2E, *arguments], env)
    if not found:
        yield name, FAILED, "pytest did not run"
    failed = [key for key, (how, _) in found.items() if how == FAILED]
    if failed and len(failed) <= MANY:
        ids = [os.path.join(E2E, classname.split(".")[-1] + ".py") + "::" + test for classname, test in failed]
        kept = [a for a in arguments if a not in ("-n", str(WORKERS))]
        again = run_pytest(name + "-again", [*ids, *kept, "-m", "not strict"], env)  # the last -m is the one that counts
        for key in failed:
            if again.get(key, (FAILED, ""))[0] == PASSED:
                found[key] = PASSED, ""
                print("passed at the second try: %s::%s" % (key[0].split(".")[-1], key[1]))
    for (classname, test), (how, why) in found.items():
        yield "%s::%s" % (classname.split(".")[-1], test), how, why


def end_to_end(name, tier, more=(), env=None, serial=True):
    """Most tests side by side; those that need the CPUs for themselves after them."""
    common = ["--tier", tier, *more]
    yield from pytest(name, [*common, "-m", "not serial", "-n", str(WORKERS)], env)
    if serial:
        yield from pytest(name + "-serial", [*common, "-m", "serial"], env)


def suite_e2e(options):
    """The binary, over every CPython found."""
    yield from end_to_end("e2e", "long" if options.long else "quick")


def suite_tsan(_):
    """TSan: the writing thread, the rings and the line of progress, where threads share memory."""
    if not build_tsan():
        yield "build", FAILED, "see above"
        return
    yield from unit("build-tsan", {"TSAN_OPTIONS": "halt_on_error=1:exitcode=99"}, TSAN_TESTS)


def suite_sanitized(options):
    """ASan and UBSan: unit tests, and end to end on two CPythons (with --long on all of them, and those tests too that need the CPUs
    for themselves: they are about rates and shares, which sanitizers spoil)."""
    if not build_sanitized():
        yield "build", FAILED, "see above"
        return
    yield from unit("build-sanitized", SANITIZED)
    env = dict(SANITIZED, PYROMETER=os.path.join(ROOT, "build-sanitized", "pyrometer"))
    more = [] if options.long else ["--pythons", "two"]
    for test in SOURCE_TESTS:
        more += ["--ignore", os.path.join(E2E, test)]
    yield from end_to_end("sanitized", "quick", more, env, serial=options.long)


# --- fuzzing ---


def seeds(target):
    """The kept corpus of a fuzzer."""
    short = target[len("fuzz_"):]
    for folder in (target, short):
        path = os.path.join(ROOT, "tests", "fuzz", "corpus", folder)
        if os.path.isdir(path):
            return [path]
    return []


def fuzz_one(path, seconds):
    target = os.path.basename(path)
    found = os.path.join(ROOT, "build-sanitized", "corpus", target)
    os.makedirs(found, exist_ok=True)
    command = [path, found, *seeds(target), "-max_total_time=%d" % seconds, "-timeout=20", "-rss_limit_mb=2048",
               "-print_final_stats=1", "-artifact_prefix=" + os.path.join(ROOT, "build-sanitized", target + "-")]
    log = os.path.join(LOGS, target + ".log")
    with open(log, "wb") as out:
        # undefined behaviour ends the run like any other finding
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                env=dict(os.environ, UBSAN_OPTIONS=SANITIZED["UBSAN_OPTIONS"])).returncode
    with open(log, encoding="utf-8", errors="replace") as f:
        text = f.read()
    runs = re.search(r"number_of_executed_units: (\d+)", text)
    if status:
        print("".join(text.splitlines(keepends=True)[-40:]))
    if not status and (not runs or int(runs.group(1)) == 0):
        return target, FAILED, "it executed nothing"
    return target, outcome(status == 0), "%s inputs in %d s" % (runs.group(1) if runs else "?", seconds)


def suite_fuzz(options):
    """Each fuzzer from its kept corpus; new finds stay in build-sanitized/corpus."""
    if not build_sanitized():
        yield "build", FAILED, "see above"
        return
    targets = sorted(p for p in glob.glob(os.path.join(ROOT, "build-sanitized", "**", "fuzz_*"), recursive=True)
                     if os.path.isfile(p) and os.access(p, os.X_OK) and "." not in os.path.basename(p))
    if not targets:
        yield "fuzzers", FAILED, "none were built"
    os.makedirs(LOGS, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
        yield from pool.map(lambda path: fuzz_one(path, options.fuzz_seconds), targets)


SUITES = {
    "build": suite_build,
    "unit": suite_unit,
    "e2e": suite_e2e,
    "fuzz": suite_fuzz,
    "tsan": suite_tsan,
    "sanitized": suite_sanitized,
}


def stray_store():
    """A .pyrometer that the program finds upward from temporary folders; None if there is none."""
    folder = os.path.realpath(tempfile.gettempdir())
    while True:
        if os.path.exists(os.path.join(folder, ".pyrometer")):
            return os.path.join(folder, ".pyrometer")
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)


def main():
    parser = argparse.ArgumentParser(description="every test")
    parser.add_argument("--long", action="store_true", help="the long tier")
    parser.add_argument("--only", default=",".join(SUITES), metavar="SUITES", help="of " + ",".join(SUITES))
    parser.add_argument("--fuzz-seconds", type=int, metavar="N", help="for each fuzzer")
    options = parser.parse_args()
    if options.fuzz_seconds is None:
        options.fuzz_seconds = 60 if options.long else 2  # `make fuzz` is for long runs
    wanted = options.only.split(",")
    unknown = set(wanted) - set(SUITES)
    if unknown:
        parser.error("no suite " + ", ".join(sorted(unknown)))
    stray = stray_store()
    if stray:
        parser.error("%s is above the folders that tests work in, and they would find it: remove it, or set TMPDIR" % stray)
    if os.path.isdir(LOGS):
        shutil.rmtree(LOGS)
    total = {PASSED: 0, FAILED: 0, SKIPPED: 0}
    lines, begin = [], time.monotonic()
    for name in wanted:
        print("== %s: %s" % (name, SUITES[name].__doc__.splitlines()[0]), flush=True)
        start = time.monotonic()
        count = {PASSED: 0, FAILED: 0, SKIPPED: 0}
        for test, how, reason in SUITES[name](options):
            count[how] += 1
            total[how] += 1
            if how != PASSED or name == "fuzz":
                print("   %s: %s%s" % (how, test, ": " + reason if reason else ""), flush=True)
        lines.append("%-10s %5d passed, %d failed, %d skipped (%d s)" % (
            name, count[PASSED], count[FAILED], count[SKIPPED], time.monotonic() - start))
        print(lines[-1], flush=True)
    print("\n" + "\n".join(lines))
    print("all of it: %d s" % (time.monotonic() - begin))
    print("%d passed, %d failed, %d skipped" % (total[PASSED], total[FAILED], total[SKIPPED]))
    sys.exit(1 if total[FAILED] else 0)


if __name__ == "__main__":
    main()
