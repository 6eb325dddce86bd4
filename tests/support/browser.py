"""Headless Chromium, which opens local pages and presses keys."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from support.programs import require

Scheme = Literal["light", "dark"]

QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
)

CONTRASTS = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgba(color) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}
function background(element) {
  for (let at = element; at; at = at.parentElement) {
    const color = rgba(getComputedStyle(at).backgroundColor);
    if (color[3] === 255) return color;
  }
  return [255, 255, 255, 255];
}
function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
  return .2126 * x + .7152 * y + .0722 * z;
}
const found = [];
for (const element of document.querySelectorAll('body *')) {
  const text = [...element.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join('').trim();
  if (!text || !element.checkVisibility()) continue;
  const [a, b] = [rgba(getComputedStyle(element).color), background(element)].map(luminance).sort((x, y) => y - x);
  found.push([(a + .05) / (b + .05), text.slice(0, 40)]);
}
return found;
"""


@dataclass(frozen=True)
class Browser:
    """One window."""

    driver: Chrome

    def open(self, page: Path, *, scheme: Scheme = "light", width: int = 1_100) -> None:
        """Open a file in a clean page."""
        self.driver.get("about:blank")
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.set_window_size(width, 900)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get(page.as_uri())

    @property
    def complaints(self) -> list[str]:
        """Return the console messages since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    @property
    def requested(self) -> list[str]:
        """Return the addresses requested since the last call, including the page's own."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements that a CSS selector names."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script: str) -> Any:
        """Run a function's body in the page."""
        return self.driver.execute_script(script)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def contrasts(self) -> list[tuple[float, str]]:
        """Return (contrast ratio against its background, start of the text) of every visible text, the worst first."""
        return sorted((ratio, text) for ratio, text in self.run(CONTRASTS))


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Open a window; skip where Chromium or its driver is not installed, but fail in CI."""
    options = ChromeOptions()
    options.binary_location = require("chromium")
    for argument in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, Service(require("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
