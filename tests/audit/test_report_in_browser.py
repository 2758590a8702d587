"""The report as a reader sees it: in a headless Chromium."""

import itertools
import json
import re
import shutil
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from draftcert.audit.records import Audit
from draftcert.audit.report import write_report
from tests.browsers import chromium


@pytest.fixture(scope="module")
def report(audited):
    return write_report(audited)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    yield from chromium(tmp_path_factory.mktemp("profile"))


@pytest.fixture
def page(driver, report):
    driver.set_window_size(1100, 900)
    driver.get(report.html.as_uri())
    return driver


def text(page, part):
    return page.find_element(By.CSS_SELECTOR, f"#viewer .{part}").text


ATTACKS = (
    "<script>document.title = 'pwned'</script>",
    "<img src=x onerror=\"document.title = 'pwned'\">",
    "</script></style></textarea><svg onload=\"document.title = 'pwned'\">",
    "\" autofocus onfocus=\"document.title = 'pwned'",
    "<a href=\"javascript:document.title = 'pwned'\">x</a>",
    "<iframe srcdoc=\"<script>parent.document.title = 'pwned'</script>\"></iframe>",
    "<form action=http://example.org><button id=run>x</button></form>",
    "<style>* { display: none }</style><base href=http://example.org>",
    '<meta http-equiv=refresh content="0; url=http://example.org">',
    "<!--",
    "{{ 7 * 7 }}${7 * 7}",
    "\u202eturned\u2066 \x1b[2J\x00\u2028",
)


@pytest.fixture(scope="module")
def hostile(audited, tmp_path_factory):
    """A report in which every text that is not the program's own is an attack."""
    folder = tmp_path_factory.mktemp("hostile") / "audit"
    shutil.copytree(audited, folder)
    found = Audit.open(folder)
    trace, attacks = found.trace() or {}, zip(found.prompts, itertools.cycle(ATTACKS), strict=False)
    hostile = replace(
        found,
        configuration=replace(found.configuration, target="".join(ATTACKS), draft="".join(ATTACKS)),
        prompts=tuple(replace(prompt, id=attack, category=attack) for prompt, attack in attacks),
    )
    trace |= {"prompt": ATTACKS[0], "drafter": ATTACKS[1], "text": ATTACKS[2]}
    for step in trace["steps"]:
        step["before"], step["committed"] = "".join(ATTACKS), list(ATTACKS)
        for node, attack in zip(step["nodes"], itertools.cycle(ATTACKS), strict=False):
            node |= {"token": attack, "target": [[attack, 0.5]]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Audit, "open", lambda _: hostile)
        patch.setattr(Audit, "trace", lambda self: trace)
        patch.setattr(Audit, "in_context", lambda self, row, *_: (ATTACKS[row % len(ATTACKS)], ATTACKS[0], ATTACKS[1]))
        return write_report(folder)


def test_attacks_are_read_and_do_nothing(driver, report, hostile):
    driver.get(report.html.as_uri())
    kinds = "return [...new Set([...document.querySelectorAll('*')].map((each) => each.tagName))].sort()"
    usual = driver.execute_script(kinds)
    driver.get_log("browser")
    driver.get(hostile.html.as_uri())
    viewer = driver.find_element(By.ID, "viewer")
    viewer.send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.END)
    assert driver.execute_script(kinds) == usual
    assert "pwned" not in driver.title.replace("title = 'pwned'", "")
    assert driver.current_url.startswith(hostile.html.as_uri())
    driver.find_element(By.CSS_SELECTOR, "header summary").click()
    shown = driver.find_element(By.CSS_SELECTOR, "dd").text
    assert "<script>document.title" in shown
    assert "\\u202eturned\\u2066 \\x1b[2J" in shown
    acting = "return [...document.querySelectorAll('*')].flatMap((e) => [...e.attributes])"
    acting += ".filter((a) => !a.name.startsWith('data-'))"
    acting += ".filter((a) => a.name.startsWith('on') || a.name == 'style' || /javascript:/i.test(a.value)).length"
    assert driver.execute_script(acting) == 0
    assert driver.get_log("browser") == []


def test_the_policy_stops_what_an_escape_would_let_through(driver, hostile):
    """The second line: even if an attack came to stand in the page, it would not run or load anything."""
    driver.get(hostile.html.as_uri())
    driver.execute_script(
        "const script = document.createElement('script'); script.textContent = 'window.pwned = 1';"
        "document.body.append(script);"
        'const image = \'<img src=x onerror="window.pwned = 2" style="width: 77px">\';'
        "document.body.insertAdjacentHTML('beforeend', image)"
    )
    assert driver.execute_script("return window.pwned") is None
    assert driver.execute_script("return document.body.lastElementChild.style.width") == ""
    refused = [entry["message"] for entry in driver.get_log("browser")]
    assert any("script" in message and "Content Security Policy" in message for message in refused)
    assert any("style" in message and "Content Security Policy" in message for message in refused)


def test_the_markdown_report_shows_attacks_too(hostile):
    page = MarkdownIt("commonmark").enable("table").render(hostile.markdown.read_text())
    assert set(re.findall(r"</?([a-z]\w*)", page)) <= {
        *("h1", "h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "em", "strong")
    }
    assert "&lt;script&gt;document.title" in page


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
    assert len(charts) == 9
    for table in charts:
        figure = page.find_element(By.CSS_SELECTOR, f"#{table.key}-figure svg")
        assert figure.size["width"] > 300
        assert figure.size["height"] > 200
        for line in table.chart.lines:
            assert line in figure.text
        told = figure.get_attribute("aria-describedby")
        assert page.find_element(By.ID, told).get_attribute("textContent")
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
        # No table needs it either: what is too wide is shown as cards.
        assert page.find_elements(By.CSS_SELECTOR, "table.cards")
        page.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        wide = "return [...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth)"
        assert page.execute_script(f"{wide}.map((e) => e.firstElementChild.id)") == []
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


CONTRAST = """
const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (e) => {
    const colour = getComputedStyle(e).backgroundColor;
    return colour == "rgba(0, 0, 0, 0)" ? behind(e.parentElement) : colour;
};
const own = (e) => [...e.childNodes].some((n) => n.nodeType == 3 && n.textContent.trim());
return [...document.querySelectorAll("body *")].filter((e) => own(e) && e.getClientRects().length).map((e) => {
    const style = getComputedStyle(e), svg = e.ownerSVGElement;
    const [a, b] = [light(svg ? style.fill : style.color), light(behind(svg ? svg.parentElement : e))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName, e.textContent.slice(0, 40)];
}).filter(([ratio]) => ratio < 4.5);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_by_day_and_by_night(page, scheme):
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    try:
        dark = page.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
        assert dark == (scheme == "dark")
        assert page.execute_script(CONTRAST) == []
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def first_tree(steps):
    """The index of the step that is shown first: the first with a drafted token."""
    return next(index for index, step in enumerate(steps) if len(step["nodes"]) > 1)


def test_the_viewer_steps_by_keyboard(page, audited):
    steps = (Audit.open(audited).trace() or {})["steps"]
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
    steps = (Audit.open(audited).trace() or {})["steps"]
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
