"""The page in a real browser: Chrome's DevTools protocol over a pipe, with nothing installed."""

from __future__ import annotations

import base64
import fcntl
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from ringfence.report import page

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def _high_pipe() -> tuple[int, int]:
    """A pipe whose descriptors are neither 3 nor 4."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    return high[0], high[1]


class Browser:
    """A headless browser that answers one DevTools command after the other."""

    def __init__(self, program: str, profile: Path) -> None:
        # The protocol wants exactly the descriptors 3 and 4; a shell puts them there.
        (to_read, self._to), (self._from, to_write) = _high_pipe(), _high_pipe()
        script = f'exec "$@" 3<&{to_read} 4>&{to_write} {to_read}<&- {to_write}>&-'
        command = ["bash", "-c", script, "browser", program, *FLAGS, f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            [*command, "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._count, self._pending = 0, b""
        self._session: str | None = None
        self.complaints: list[Any] = []  # what pages threw, and what the browser logged of them
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> Any:
        """Send a command and wait for its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._count:
            if answer["method"] in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.complaints.append(answer["params"])
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise RuntimeError(f"the browser ended with exit code {self.process.wait()}")
            self._pending += chunk
        message, self._pending = self._pending.split(b"\0", 1)
        document: dict[str, Any] = json.loads(message)
        return document

    def open(self, address: str, width: int = 1200, height: int = 900) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **metrics)
        self.ask("Page.navigate", url="about:blank")  # else a new hash would not load the page
        self.ask("Page.navigate", url=address)
        while self.run("document.readyState") != "complete" or self.run("location.href") == (
            "about:blank"
        ):
            pass

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def scheme(self, name: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, whole: bool = False) -> bytes:
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        os.close(self._to)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._from)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser found: none of {', '.join(NAMES)} is installed")
    opened = Browser(program, tmp_path_factory.mktemp("browser") / "profile")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def address(finished: Path) -> str:
    return page.write(finished).as_uri()


#: The iterations whose constraint is shown.
SHOWN = """
[...document.querySelectorAll('#map [data-layer=constraint]')]
  .filter(g => getComputedStyle(g).display !== 'none').map(g => +g.dataset.i)
"""


def displayed(browser: Browser, selector: str) -> bool:
    """Whether the first such element is there and neither it nor a group around it is hidden."""
    seen = "e => e !== null && getComputedStyle(e.closest('.off') ?? e).display !== 'none'"
    return bool(browser.run(f"({seen})(document.querySelector({selector!r}))"))


def test_slider_shows_another_iteration(browser: Browser, address: str) -> None:
    browser.open(address)
    chosen = browser.run("+document.getElementById('iteration').value")
    assert browser.run(SHOWN) == [chosen]
    for i in (1, chosen):
        browser.run(
            f"(s => {{ s.value = {i}; s.dispatchEvent(new Event('input')); }})"
            "(document.getElementById('iteration'))"
        )
        assert browser.run(SHOWN) == [i]
        assert browser.run("document.getElementById('shown').textContent").startswith(f"{i} of")
        rows = "[...document.querySelectorAll('tr.current')].map(r => +r.dataset.row)"
        assert browser.run(rows) == [i]


def test_a_view_can_be_linked_to(browser: Browser, address: str) -> None:
    browser.open(f"{address}#iteration=1&task=1&layers=constraint,evidence&cell=1,2")
    assert browser.run(SHOWN) == [1]
    assert displayed(browser, "#map .letter")
    assert not displayed(browser, "#map .outline.truth")
    assert "Row 1, column 2" in browser.run("document.getElementById('tip').textContent")
    assert browser.run("document.getElementById('task').value") == "1"


def test_a_senseless_link_is_ignored(browser: Browser, address: str) -> None:
    browser.open(f"{address}#iteration=99&task=length&layers=nothing&cell=<b>")
    chosen = browser.run("+document.getElementById('iteration').value")
    assert browser.run(SHOWN) == []
    assert chosen >= 1
    assert browser.run("document.getElementById('task').value") == "all"
    assert not displayed(browser, "#tip")


@pytest.mark.parametrize(
    ("layer", "selector"),
    [
        ("truth", "#map .outline.truth"),
        ("paths", "#map .paths"),
        ("evidence", "#map .letter"),
        ("visits", "#map .visits[data-only=all]:not(.off)"),
    ],
)
def test_layers_can_be_switched(browser: Browser, address: str, layer: str, selector: str) -> None:
    browser.open(address)
    before = displayed(browser, selector)
    for expected in (not before, before):
        browser.run(f"document.querySelector('#layers input[value={layer}]').click()")
        assert displayed(browser, selector) == expected


def test_task_choice_shows_its_paths_only(browser: Browser, address: str) -> None:
    browser.open(address)
    count = (
        "[...document.querySelectorAll('#map .paths')]"
        ".filter(g => !g.classList.contains('off')).map(g => g.dataset.task)"
    )
    assert browser.run(count) == ["0", "1"]
    browser.run(
        "(s => { s.value = '1'; s.dispatchEvent(new Event('change')); })"
        "(document.getElementById('task'))"
    )
    assert browser.run(count) == ["1"]


def test_keys_move_over_the_cells(browser: Browser, address: str) -> None:
    browser.open(address)
    browser.run("document.getElementById('cells').focus()")
    said = "document.getElementById('tip').textContent"
    assert "Row 0, column 0" in browser.run(said)
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowLeft"):
        browser.run(
            "document.getElementById('cells').dispatchEvent("
            f"new KeyboardEvent('keydown', {{key: '{key}'}}))"
        )
    assert "Row 1, column 0" in browser.run(said)
    assert "The constraint of iteration" in browser.run(said)


def test_a_continuous_world_s_page_is_explored_alike(browser: Browser, speed: Path) -> None:
    browser.complaints.clear()
    browser.open(f"{page.write(speed).as_uri()}#iteration=1&task=1")
    shown = (
        "[...document.querySelectorAll('#explorer [data-layer]')]"
        ".filter(g => !g.classList.contains('off')).map(g => ({...g.dataset}))"
    )
    parts = browser.run(shown)
    assert {part["i"] for part in parts if "i" in part} == {"1"}
    assert {part.get("only", part.get("task", "1")) for part in parts} == {"1"}
    browser.run("document.querySelector('#layers input[value=visits]').click()")
    assert "visits" not in {part["layer"] for part in browser.run(shown)}
    assert browser.run("document.documentElement.scrollWidth") <= 1200
    assert browser.complaints == []


def test_walks_move_by_themselves(browser: Browser, floor: Path) -> None:
    browser.open(page.write(floor).as_uri())
    place = "+document.querySelector('.ant').cx.animVal.value"
    seek = "document.getElementById('walk-1').setCurrentTime({:g})"
    places = []
    for seconds in (0.0, 3.5):
        browser.run(f"document.getElementById('walk-1').pauseAnimations(); {seek.format(seconds)}")
        places.append(browser.run(place))
    assert places[0] != places[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_page_is_drawn_in_full_width(
    browser: Browser, address: str, scheme: str, width: int
) -> None:
    browser.scheme(scheme)
    browser.open(address, width=width)
    # Nothing but tables may be wider than the window, and those scroll by themselves.
    assert browser.run("document.documentElement.scrollWidth") <= width
    image = matplotlib.image.imread(io.BytesIO(browser.screenshot()), format="png")
    assert image.shape[1] == width
    assert image[..., :3].std() > 0.03
    assert len(np.unique(image.reshape(-1, image.shape[-1]), axis=0)) > 50
    assert (image[..., :3].mean() < 0.5) == (scheme == "dark")


def test_page_asks_for_nothing_and_throws_nothing(browser: Browser, address: str) -> None:
    browser.complaints.clear()
    browser.open(address)
    browser.run("document.getElementById('play').click()")
    assert browser.run("performance.getEntriesByType('resource').length") == 0
    assert browser.complaints == []
