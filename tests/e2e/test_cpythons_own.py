"""CPython's own tests under `run --calls`, test by test: what succeeds without us succeeds with us."""
import re
import signal
import subprocess

import pytest

from harness import PYROMETER

QUICK = ["test_sys_setprofile", "test_monitoring"]
MODULES = [*QUICK, "test_generators", "test_coroutines", "test_exceptions", "test_gc", "test_weakref", "test_pickle", "test_threading",
           "test_subprocess", "test_sys_settrace"]

# What must differ, since which version, and why: left out, in both runs.
NO_MEMORY = "3.15.2 crashes in its own calling of tools, beside any that has asked for CALL, if allocations fail: tried without us"
DIFFERENT = {
    "test_exceptions": {
        "ExceptionTests.test_exec_set_nomemory_hang": ((3, 15), NO_MEMORY),
        "ExceptionTests.test_memory_error_in_PyErr_PrintEx": ((3, 15), NO_MEMORY),
    },
    "test_pickle": {
        "CPicklerUnpicklerObjectTests.test_clear_unpickler_memo_memory_error": (
            (3, 12), "lets the very next allocation fail, and wants it to be the unpickler's; with us it is that of a name, of a function met for the first time"),
    },
    "test_subprocess": {
        "POSIXProcessTestCase.test_pass_fds_redirected": ((3, 8), "wants to see no descriptor but its own; the guest of its child holds one, above 400"),
    },
    "test_sys_setprofile": {
        "TestEdgeCases.test_method_with_c_function": (
            (3, 12), "where any tool has asked for CALL, a profile function hears the return of the very sys.setprofile() that set it"),
    },
    "test_monitoring": {
        "MonitoringCountTest.test_c_return_count": (
            (3, 12), "C_RETURN without CALL is silent only while no other tool has asked for CALL; and once it has failed, every test after it does"),
    },
}

# Runs one module by regrtest, without the tests named. The tests of sys.monitoring demand that no tool but theirs has asked for
# events: those that were there before are hidden. What they find to be different beside us must be so beside any other tool that asks
# for the same, and this is what they are compared with (--beside).
DRIVER = """
import importlib, runpy, sys, unittest
beside = sys.argv[1] == "--beside" and sys.argv.pop(1)
name, *left_out = sys.argv[1:]
if name == "test_monitoring" and hasattr(sys, "monitoring"):
    tools, mask = sys.monitoring, 0
    if beside:
        tools.use_tool_id(5, "another")
        for event in ("PY_START", "PY_RETURN", "PY_RESUME", "PY_YIELD", "PY_THROW", "PY_UNWIND", "CALL", "C_RETURN", "C_RAISE"):
            tools.register_callback(5, getattr(tools.events, event), lambda *a: None)
            mask |= getattr(tools.events, event)
        tools.set_events(5, mask & ~(tools.events.C_RETURN | tools.events.C_RAISE))
    others = [n for n in range(6) if tools.get_tool(n)]
    assert others
    def get_events(tool, ask=tools.get_events):
        return 0 if tool in others else ask(tool)
    def all_events(ask=tools._all_events):
        mine = {event: asked & ~sum(1 << n for n in others) for event, asked in ask().items()}
        return {event: asked for event, asked in mine.items() if asked}
    tools.get_events, tools._all_events = get_events, all_events
module = importlib.import_module("test." + name)
for test in left_out:
    owner, _, method = test.partition(".")
    if hasattr(getattr(module, owner, None), method):
        setattr(getattr(module, owner), method, unittest.skip("differs")(getattr(getattr(module, owner), method)))
sys.argv[1:] = ["-v", name]
runpy.run_module("test", run_name="__main__", alter_sys=True)
"""


def left_out_of(module, python):
    return [test for test, (since, _) in DIFFERENT.get(module, {}).items() if python.version[:2] >= since]


def results(command, module, left_out, cwd, beside=()):
    """(how many tests ran, the names of those that failed), or None if the module is not there. A crash has a name, too."""
    done = subprocess.run([*command, "-c", DRIVER, *beside, module, *left_out], cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                          # some wait for a KeyboardInterrupt, which never comes to what a shell has put into the background
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    if "No module named 'test.%s'" % module in done.stdout:
        return None
    ran = sum(int(n) for n in re.findall(r"^Ran (\d+) tests? in", done.stdout, re.M))
    # a name is the first word of it, and the class with its module: what follows are subtests
    failed = set(re.findall(r"^={70}\n(?:FAIL|ERROR): (\S+(?: \([^)]*\))?)", done.stdout, re.M))
    if done.returncode and not failed:
        failed.add("ended with %d: %s" % (done.returncode, done.stdout[-2000:]))
    # regrtest of 3.10 imports the module anew, and runs what was left out
    failed = {name for name in failed if not any(name.startswith(method) and owner in name for owner, method in (t.split(".") for t in left_out))}
    return ran, failed


def pytest_generate_tests(metafunc):
    """All of them take minutes for each CPython."""
    metafunc.parametrize("module", MODULES if metafunc.config.getoption("--tier") == "long" else QUICK)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_cpythons_own_tests(python, module, tmp_path):
    if not python.has("test." + module):
        pytest.skip("this CPython came without " + module)
    left_out = left_out_of(module, python)
    bare = results([python.path], module, left_out, tmp_path, ["--beside"])
    ours = results([PYROMETER, "run", "--calls", "--quiet", "--force", "-o", str(tmp_path / "x.pyro"), "--", python.path], module, left_out, tmp_path)
    assert ours[0] == bare[0] > 0, (bare, ours)
    assert ours[1] <= bare[1], ours[1] - bare[1]
