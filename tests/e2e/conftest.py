"""Which CPythons the tests run over, and how the two tiers differ. See harness.py for the rest."""
import os
import shutil
import tempfile
import zlib

import pytest

import browser as browser_module
import harness


def pytest_addoption(parser):
    parser.addoption("--tier", choices=["quick", "long"], default="quick",
                     help="long: every test on every CPython, and larger counts")
    parser.addoption("--pythons", default="", metavar="NAMES",
                     help="only these CPythons, by name: 3.8,3.11-system; 'two': the oldest and the default")


def chosen_pythons(config):
    pythons = harness.find_pythons()
    wanted = config.getoption("--pythons")
    if wanted == "two":
        return harness.two_pythons(pythons)
    if wanted:
        names = wanted.split(",")
        pythons = [p for p in pythons if p.name in names]
    return pythons


# What these look at is the reading half, or the shell around it: CPython's version hardly matters to it, so
# the quick tier takes the oldest, the default and the newest for them.
READING_HALF = {"test_baddays", "test_diff", "test_exports", "test_flame", "test_graph", "test_imports", "test_lines",
                "test_package", "test_totals"}


# Debian's own builds of a version that pyenv has, too, matter where we meet the interpreter itself; the rest of the quick tier takes
# one build of each version.
EVERY_BUILD = {"test_accuracy", "test_agent", "test_attach", "test_calls", "test_memory_truth", "test_run", "test_trace_details"}

SANITIZED = "PYROMETER_SANITIZED" in os.environ


def one_of_each(pythons):
    """The first build of each version."""
    return [p for i, p in enumerate(pythons) if p.version[:2] not in {other.version[:2] for other in pythons[:i]}]


def pytest_generate_tests(metafunc):
    if "python" in metafunc.fixturenames:
        pythons = chosen_pythons(metafunc.config)
        if metafunc.config.getoption("--tier") == "quick":
            if metafunc.definition.get_closest_marker("long"):
                pythons = harness.two_pythons(pythons)
            elif metafunc.module.__name__ in READING_HALF:
                pythons = [p for p in pythons if p in harness.two_pythons(pythons) or p is pythons[-1]]
            elif metafunc.module.__name__ not in EVERY_BUILD or metafunc.definition.get_closest_marker("serial"):
                pythons = one_of_each(pythons)
            # of our own code sanitizers see the same on both: tests take turns
            if SANITIZED and metafunc.config.getoption("--pythons") == "two":
                pythons = pythons[zlib.crc32(metafunc.function.__name__.encode()) % len(pythons):][:1]
        metafunc.parametrize("python", pythons, ids=[p.name for p in pythons])


def pytest_collection_modifyitems(config, items):
    """The wheel's tests, which take longest and wait for each other, first, for they stay together on one worker then. Tests that are
    more about a browser or another reader than about us are not repeated under sanitizers."""
    items.sort(key=lambda item: "wheel" not in item.keywords)
    if config.getoption("--tier") == "quick":
        not_here = lambda item: "long_only" in item.keywords or SANITIZED and ("once" in item.keywords or "browser" in item.fixturenames)
        config.hook.pytest_deselected(items=[item for item in items if not_here(item)])
        items[:] = [item for item in items if not not_here(item)]


def pytest_configure(config):
    """The tests' folders go where no .pyrometer of somebody else stands above them."""
    if hasattr(config, "workerinput") or config.option.basetemp or not has_runs_above(tempfile.gettempdir()):
        return
    for parent in ("/var/tmp", "/dev/shm"):
        if os.access(parent, os.W_OK) and not has_runs_above(parent):
            config.option.basetemp = tempfile.mkdtemp(prefix="pyrometer-tests-", dir=parent)
            config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))
            return


def pytest_sessionstart(session):
    if not os.access(harness.PYROMETER, os.X_OK) and not session.config.option.collectonly:
        raise pytest.UsageError("no binary at %s: run `make` first, or set PYROMETER" % harness.PYROMETER)
    if not chosen_pythons(session.config):
        raise pytest.UsageError("no CPython found")


def pytest_report_header(config):
    return "pyrometer: %s; CPython %s" % (harness.PYROMETER, ", ".join(p.name for p in chosen_pythons(config)))


@pytest.fixture
def default_python():
    return harness.default_python()


@pytest.fixture
def scale(request):
    """scale(quick, long): a count that depends on the tier."""
    is_long = request.config.getoption("--tier") == "long"
    return lambda quick, long: long if is_long else quick


@pytest.fixture
def two_cpus():
    cpus = harness.cpus()
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    return cpus[0], cpus[1]


@pytest.fixture
def target():
    """target(command): started, ready, and gone after the test."""
    started = []

    def start(command, **kwargs):
        started.append(harness.Target(command, **kwargs))
        return started[-1]

    yield start
    for one in started:
        one.__exit__()


def has_runs_above(folder):
    """Is there a .pyrometer in the folder or above it, which would catch the recordings?"""
    folder = os.path.abspath(folder)
    while True:
        if os.path.isdir(os.path.join(folder, ".pyrometer")):
            return True
        if folder == "/":
            return False
        folder = os.path.dirname(folder)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Recordings without -o go to the nearest .pyrometer: each test has its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYROMETER_UNSAFE_NO_CHECK", raising=False)


@pytest.fixture
def virgin(tmp_path):
    """The working directory, with no .pyrometer in it or above it."""
    if has_runs_above(tmp_path):
        pytest.skip("every temporary folder here has a .pyrometer above it")
    return tmp_path


@pytest.fixture(scope="session")
def is_root():
    return os.geteuid() == 0


@pytest.fixture(scope="session")
def truth_env(tmp_path_factory):
    """The environment of the programs in workloads/memory, whose libraries are built for them."""
    import memory_oracle  # needs packages that not every test does
    return memory_oracle.build(str(tmp_path_factory.mktemp("truth")))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not browser_module.CHROMIUM or not browser_module.DRIVER:
        pytest.skip("no chromium or no chromedriver: tools/setup.sh test installs both")
    pytest.importorskip("selenium")
    one = browser_module.Browser(tmp_path_factory.mktemp("chromium"))
    yield one
    one.driver.quit()
