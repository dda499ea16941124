"""Pictures in a real browser: Chromium, headless, driven through chromedriver; without it those tests are skipped by name.

Every page is loaded with a log of its console and of its network: both must stay empty. EVIL are names that must stay text.
"""
import json
import shutil

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
FLAGS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --window-size=1200,700").split()

EVIL = [
    "</script><script>window.pwned=1</script>",
    "\"><img src=x onerror=window.pwned=1>",
    "]]></script><script>window.pwned=1</script>",
    "'-window.pwned_by_quote-'",
    "&lt;b&gt;&amp;&#60;",
    "\u202etxt.exe\u202c",
    "\u05d0\u05d1\u05d2",
    "esc\x1b[31m\x00\x07end",
    "\u2028line\u2029",
    "{{data}}",
    "n" * 100000,
]


class Browser:
    """Chromium with one page; console and network are watched."""

    def __init__(self, profile):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in FLAGS + ["--user-data-dir=%s" % profile, "--force-prefers-reduced-motion", "--allow-file-access-from-files"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.set_script_timeout(60)

    def open(self, path):
        self.driver.get("about:blank")
        self.logs()
        self.path = str(path)
        self.driver.get("file://" + self.path)
        return self

    def logs(self):
        """(console lines, addresses that were asked for) since the last call"""
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return [e["message"] for e in self.driver.get_log("browser")], asked

    def quiet(self):
        """Nothing was said on the console, nothing asked of the network but the page itself."""
        console, asked = self.logs()
        console = [line for line in console if "favicon" not in line]
        assert not console, console
        assert {url for url in asked if not url.startswith("data:")} <= {"file://" + self.path, "about:blank"}, asked

    def js(self, script, *args):
        return self.driver.execute_script(script, *args)

    def state(self):
        return self.js("return flame.state()")

    def block(self, name):
        i = self.js("return flame.find(arguments[0])", name)
        assert i >= 0, name
        return i

    def click(self, i):
        box = self.js("return flame.box(arguments[0])", i)
        self.at("Press", box, clickCount=1, button="left")
        self.at("Releas", box, clickCount=1, button="left")

    def at(self, what, box, **more):
        event = "mouseMoved" if what == "Mov" else "mouse%sed" % what
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", dict(
            type=event, x=box["x"] + box["width"] / 2, y=box["y"] + box["height"] / 2, **more))

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def text(self, element):
        return self.js("return document.getElementById(arguments[0]).textContent", element)

    def settle(self):
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
