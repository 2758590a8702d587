"""Browsers for tests of pages: headless, without a request of their own."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.remote.webdriver import WebDriver

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
)


def chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """A Chromium with what it logs and requests; without one a skip, in CI a failure."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        message = "no Chromium: apt-get install chromium chromium-driver"
        pytest.fail(message) if "CI" in os.environ else pytest.skip(message)
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


def firefox() -> Iterator[WebDriver]:
    """A Firefox, or a skip that says what is missing."""
    program, driver = shutil.which("firefox-esr") or shutil.which("firefox"), shutil.which("geckodriver")
    if not program or not driver:
        pytest.skip(f"no {'geckodriver' if program else 'Firefox'}: both must be on the PATH")
    options = webdriver.FirefoxOptions()
    options.binary_location = program
    options.add_argument("--headless")
    browser = webdriver.Firefox(options=options, service=webdriver.FirefoxService(driver))
    yield browser
    browser.quit()
