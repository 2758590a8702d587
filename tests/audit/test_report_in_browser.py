"""The report as a reader sees it: in a headless Chromium."""

import json
import os
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from draftcert.audit.report import write_report

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


@pytest.fixture(scope="module")
def report(audited):
    return write_report(audited)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        message = "no Chromium: apt-get install chromium chromium-driver"
        pytest.fail(message) if "CI" in os.environ else pytest.skip(message)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    yield driver
    driver.quit()


@pytest.fixture
def page(driver, report):
    driver.set_window_size(1100, 900)
    driver.get(report.html.as_uri())
    return driver


def text(page, part):
    return page.find_element(By.CSS_SELECTOR, f"#viewer .{part}").text


def test_no_script_error_and_no_outside_request(page, report):
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    of_the_page = [request["request"]["url"] for request in sent if request["documentURL"] == report.html.as_uri()]
    assert of_the_page
    assert [url for url in of_the_page if url != report.html.as_uri() and not url.startswith("data:")] == []
    assert page.get_log("browser") == []


def test_every_table_is_shown_with_its_rows_and_its_reading(page, report):
    for section in report.sections:
        assert page.find_element(By.ID, section.key).text.startswith(section.title)
        for table in section.tables:
            shown = page.find_element(By.ID, table.key)
            assert len(shown.find_elements(By.CSS_SELECTOR, "tbody tr")) == len(table.rows)
            assert len(shown.find_elements(By.CSS_SELECTOR, "thead th")) == len(table.columns)
            assert table.reading in page.find_element(By.ID, section.key).text


def test_every_figure_has_a_size_a_line_for_each_column_and_its_data_below(page, report):
    charts = [table for section in report.sections for table in section.tables if table.chart]
    assert len(charts) == 7
    for table in charts:
        figure = page.find_element(By.CSS_SELECTOR, f"#{table.key}-figure svg")
        assert figure.size["width"] > 300
        assert figure.size["height"] > 200
        for line in table.chart.lines:
            assert line in figure.text
        data = page.find_element(By.ID, table.key)
        assert not data.is_displayed()
        page.find_element(By.XPATH, f"//details[.//table[@id='{table.key}']]/summary").click()
        assert data.is_displayed()


def test_ids_are_unique(page):
    ids = page.execute_script("return [...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))


def test_a_phone_shows_the_page_without_scrolling_sideways(page):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        page.refresh()
        assert page.execute_script("return innerWidth") == 360
        assert page.execute_script("return document.documentElement.scrollWidth") <= 360
        small = page.execute_script(
            "return [...document.querySelectorAll('figure svg text')].filter("
            "(each) => each.getBoundingClientRect().height < 7 && each.textContent.trim()).length"
        )
        assert small == 0
        # Tables with long texts are cards there, which need no scrolling either.
        cards = page.find_elements(By.CSS_SELECTOR, "table.cards")
        assert cards
        assert all(table.size["width"] <= 360 for table in cards)
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def first_tree(steps):
    """The index of the step that is shown first: the first with a drafted token."""
    return next(index for index, step in enumerate(steps) if len(step["nodes"]) > 1)


def test_the_viewer_steps_by_keyboard(page, audited):
    steps = json.loads((audited / "trace.json").read_text())["steps"]
    viewer = page.find_element(By.ID, "viewer")
    assert text(page, "position").startswith(f"step {first_tree(steps) + 1} of {len(steps)}:")
    viewer.send_keys(Keys.HOME)
    assert text(page, "position").startswith(f"step 1 of {len(steps)}:")
    for key, place in ((Keys.ARROW_RIGHT, 2), (Keys.ARROW_RIGHT, 3), (Keys.ARROW_LEFT, 2), (Keys.END, len(steps))):
        viewer.send_keys(key)
        assert text(page, "position").startswith(f"step {place} of")
        nodes = page.find_elements(By.CSS_SELECTOR, "#viewer .node")
        assert len(nodes) == len(steps[place - 1]["nodes"])
        accepted = page.find_elements(By.CSS_SELECTOR, "#viewer .node.accepted")
        assert len(accepted) == sum(node["accepted"] for node in steps[place - 1]["nodes"])
    viewer.send_keys(Keys.ARROW_RIGHT)
    assert text(page, "position").startswith(f"step {len(steps)} of"), "the last step stays"
    viewer.send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    selected = page.find_element(By.CSS_SELECTOR, "#viewer .node.selected")
    assert selected.get_attribute("data-node") == "1"


def test_the_viewer_steps_by_mouse(page, audited):
    steps = json.loads((audited / "trace.json").read_text())["steps"]
    page.find_element(By.CSS_SELECTOR, "#viewer .next").click()
    shown = first_tree(steps) + 1
    assert text(page, "position").startswith(f"step {shown + 1} of")
    page.find_elements(By.CSS_SELECTOR, "#viewer .node")[1].click()
    assert page.find_element(By.CSS_SELECTOR, "#viewer .node.selected").get_attribute("data-node") == "1"
    assert f"“{steps[shown]['nodes'][1]['token']}”".replace(" ", "␣") in text(page, "details").replace(" ", "␣")
    slider = page.find_element(By.CSS_SELECTOR, "#viewer input")
    ActionChains(page).click_and_hold(slider).move_by_offset(slider.size["width"], 0).release().perform()
    assert text(page, "position").startswith(f"step {len(steps)} of")
    page.find_element(By.CSS_SELECTOR, "#viewer .back").click()
    assert text(page, "position").startswith(f"step {len(steps) - 1} of")
