"""The theory as a reader sees it, in a headless Chromium: the search, the colours of a dark page, a phone's width."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from draftcert.document import write_document


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        message = "no Chromium: apt-get install chromium chromium-driver"
        pytest.fail(message) if "CI" in os.environ else pytest.skip(message)
    folder: Path = tmp_path_factory.mktemp("theory")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    driver.set_window_size(1200, 900)
    driver.get(write_document(folder, only="tree")[0].as_uri())
    yield driver
    driver.quit()


def shown(page: webdriver.Chrome) -> list[str]:
    sections = page.find_elements(By.CSS_SELECTOR, "main section")
    return [str(each.get_attribute("id")) for each in sections if each.is_displayed()]


def test_the_search_leaves_what_speaks_of_the_word(page: webdriver.Chrome):
    search = page.find_element(By.ID, "search")
    every = shown(page)
    search.send_keys("margin to the last")
    assert 0 < len(shown(page)) < len(every)
    assert "M6" in shown(page)
    assert page.find_element(By.ID, "found").text == f"{len(shown(page))} of {len(every)} sections"
    search.clear()
    search.send_keys(" ")
    assert shown(page) == every
    assert page.get_log("browser") == [], "its own content policy lets the page be what it is"


def test_nothing_is_wider_than_a_phone(page: webdriver.Chrome):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    )
    wide = page.execute_script("return document.documentElement.scrollWidth")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 390


def test_figures_follow_a_dark_page(page: webdriver.Chrome):
    colour = "return getComputedStyle(document.querySelector(arguments[0])).fill"
    light = page.execute_script(colour, "figure svg text")
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    dark = page.execute_script(colour, "figure svg text")
    ink = page.execute_script("return getComputedStyle(document.body).color")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert light != dark == ink
