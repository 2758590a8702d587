"""The explorer's numbers beside exact arithmetic, in Node.js and in browsers, and the page as a reader uses it."""

import json
import math
import random
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

import mpmath
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from draftcert.document.explorer import FOLDER, explorer_fragment, generated, write_explorer
from draftcert.numerics import certificate, certificate_from_top_logprobs, log_loss, margin_bounds
from draftcert.theory import RULES as FAMILIES
from draftcert.theory import DraftcertError, Rule, parse_rule
from draftcert.theory.presets import example_rules
from tests.browsers import chromium, firefox

DIGITS = 12
RULES = [*map(str, example_rules()), "absolute(0)", "additive(0)", "multiplicative(1)", "top_m(1)", "typical(1,1)"]
RULES += ["typical(0.2, 0.7)", "typical_floor(1/2, 3/4, 0)", "top_m(4) & additive(1/5)", "additive(1)", "mars(0)"]

ENTROPIES_OR_LOGITS = re.compile("typical|entropy_power|mars")
"""Rules that speak of what a list of top log-probabilities does not hold."""


def _spread(parts: list[int]) -> list[str]:
    """Probabilities in these proportions as exact fractions."""
    return [str(Fraction(part, sum(parts))) for part in parts]


def _row(kind: int, draw: random.Random) -> list[str]:
    """A row of decimals or fractions: peaked, tied, nearly tied, with zeros, padded."""
    size = draw.randint(2, 9)
    match kind % 6:
        case 0:
            return _spread([draw.randint(1, 10**4) for _ in range(size)])
        case 1:
            return _spread([draw.randint(1, 3) for _ in range(size)])
        case 2:
            tiny = 10 ** draw.randint(3, 40)
            return _spread([tiny * 2 + 1, tiny * 2, *(draw.randint(1, 2 * tiny) for _ in range(size))])
        case 3:
            return _spread([draw.randint(1, 50) for _ in range(size)] + [0] * draw.randint(1, 300))
        case 4:
            return _spread([10 ** draw.randint(0, 30) for _ in range(size)])
        case _:
            return _spread([1 << draw.randint(0, 4) for _ in range(size)])


def cases(number: int, seed: int = 1) -> list[dict]:
    """States of the page: the worked points of the rules, then every rule in turn at every width that a row allows."""
    draw = random.Random(seed)
    states = [
        {
            "rule": str(family(*point.arguments)),
            "candidates": point.candidates,
            "logitRatio": point.logit_ratio or "",
            "kind": "probabilities",
            "numbers": ", ".join(point.probabilities),
        }
        for family in FAMILIES.values()
        for point in family.worked_points
        if point.candidates < len(point.probabilities)
    ]
    for index in range(number - len(states)):
        row, kind = _row(index, draw), "probabilities"
        state = {
            "rule": RULES[index % len(RULES)],
            "candidates": draw.choice((1, 1, 2, 3, 5, 400)),
            "logitRatio": str(Fraction(draw.randint(-3, 12), 10)),
        }
        if index % 4 == 1:
            kind, row = (
                "logits",
                [draw.choice((f"{draw.gauss(0, 4):.3f}", "1.5", f"1.5{draw.randint(0, 9):030}")) for _ in row],
            )
        elif index % 8 == 3 and not ENTROPIES_OR_LOGITS.search(state["rule"]):
            weights = sorted((draw.expovariate(1) for _ in range(40)), reverse=True)
            kind, row = "logprobs", [f"{math.log(weight / sum(weights)):.9f}" for weight in weights[:30]]
        if kind != "logprobs":  # of which a row may have more than it shows
            state["candidates"] = min(state["candidates"], len(row) - 1)
        states.append(state | {"kind": kind, "numbers": ", ".join(row)})
    return states


def judged(state: dict, bounds: bool) -> dict | None:
    """What `numerics` says of a state, with `bounds` of its margin too; None where a list leaves it open."""
    numbers, rule, m = state["numbers"].split(", "), parse_rule(state["rule"]), state["candidates"]
    given = {"logit_ratio": state["logitRatio"]}
    if state["kind"] == "logprobs":
        found = certificate_from_top_logprobs(list(map(Fraction, numbers)), rule, m, error=0)
        return {"value": float(found.lower)} if found.exact else None
    if state["kind"] == "logits":
        with mpmath.workdps(120):
            weights = [mpmath.exp(mpmath.mpf(z)) for z in numbers]
            total = sum(weights)
            row = [mpmath.nstr(weight / total, 100) for weight in weights]
        given = {"logits": numbers, "normalize": True}
    else:
        row = numbers
    found = certificate(row, rule, m, 20, **given)
    ranked = sorted(map(found.row.probability, range(len(row))), reverse=True)
    return {
        "value": float(found),
        "level": None if found.level is None else float(found.level),
        "accepted": list(found.accepted),
        "competitors": list(found.competitors),
        "pool": list(found.pool),
        "logLoss": float(log_loss(row, rule, 20, **given)),
        "ceiling": float(mpmath.log1p(m * mpmath.mpf(ranked[0].numerator) / ranked[0].denominator)),
    } | (_bounds(rule, m, ranked[0] - ranked[1]) if bounds else {})


def _bounds(rule: Rule, m: int, margin: Fraction) -> dict:
    try:
        low, high = map(float, margin_bounds(rule, m, margin=margin, digits=20))
    except DraftcertError:
        low = high = None
    return {"low": low, "high": high}


PLAIN = """(state) => {
  try {
    const found = certify(state);
    return {
      value: String(found.value), level: found.level && toNumber(found.level), accepted: found.accepted,
      competitors: found.competitors, pool: found.pool, logLoss: String(found.logLoss), ceiling: found.ceiling,
      low: found.bounds && String(found.bounds.low.value), high: found.bounds && String(found.bounds.high.value),
    };
  } catch (error) {
    if (!error.field) throw error;
    return { refused: error.message };
  }
}"""
"""The results of a state as JSON has them: it knows no infinity."""


def close(shown: str | float | None, exact: float | None) -> bool:
    if shown is None or exact is None:
        return shown is exact
    value = float(str(shown).replace("Infinity", "inf"))
    return value == exact or abs(value - exact) <= 10**-DIGITS / 2 * abs(exact)


def disagreements(judged_states: list[tuple[dict, dict | None]], shown: list[dict]) -> list[str]:
    wrong = []
    for (state, exact), found in zip(judged_states, shown, strict=True):
        if exact is None or "refused" in found:
            if (exact is None) != ("refused" in found):
                wrong.append(f"{state}: {found}, exactly {exact}")
            continue
        for key, value in exact.items():
            if not (found[key] == value if isinstance(value, list) else close(found[key], value)):
                wrong.append(f"{state}: {key} = {found[key]}, exactly {value}")
    return wrong


def in_node(states: list[dict], script: str) -> list[dict]:
    program = script + f"\nconst states = {json.dumps(states)};\nconsole.log(JSON.stringify(states.map({PLAIN})));"
    node = shutil.which("node") or pytest.skip("no Node.js: apt-get install nodejs")
    run = subprocess.run([node, "-"], input=program, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def script() -> str:
    return "\n".join(['"use strict";', (FOLDER / "certify.js").read_text(encoding="utf-8"), generated()])


@pytest.fixture(scope="module")
def judged_states() -> list[tuple[dict, dict | None]]:
    return [(state, judged(state, bounds=index % 3 == 0)) for index, state in enumerate(cases(1000))]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    return write_explorer(tmp_path_factory.mktemp("explorer") / "explorer.html")


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def browser(request, tmp_path_factory):
    yield from chromium(tmp_path_factory.mktemp("profile")) if request.param == "chromium" else firefox()


@pytest.fixture
def page(browser, page_file):
    browser.set_window_size(1200, 1000)
    browser.get("about:blank")  # else a new fragment alone would not load the page anew
    browser.get(page_file.as_uri())
    return browser


# ---- the numbers -----------------------------------------------------------------------------------------------


def test_every_number_is_that_of_exact_arithmetic(page, judged_states):
    states = [state for state, _ in judged_states]
    assert disagreements(judged_states, page.execute_script(f"return arguments[0].map({PLAIN})", states)) == []


def test_so_it_is_without_a_browser(script, judged_states):
    some = judged_states[:300]
    assert disagreements(some, in_node([state for state, _ in some], script)) == []


@pytest.mark.parametrize(
    ("formula", "changed"),
    [
        ("return c*bennett(x)", "return c*bennett(x)*(1 + 1e-12)"),
        ("+ 1.0/7.0)", "+ 1.0/7.001)"),
        ("Math.log1p(m*p_1)", "Math.log(1 + m*p_1 + 1e-12)"),
        ("logarithm(product(", "1 + logarithm(product("),
        ('row.reaching(product(v["alpha"], v["p_(1)"]), false)', 'row.reaching(product(v["alpha"], v["p_(1)"]), true)'),
        ('v["delta"], [[ratio(-1n, 1n), ratio(0n, 1n)]], true', 'v["delta"], [[ratio(-1n, 1n), ratio(0n, 1n)]], false'),
        ("mass < accepted[above] * size", "false"),
        ("competitors[last - below] * size < mass", "true"),
    ],
)
def test_a_change_of_a_formula_or_of_the_pool_is_noticed(script, judged_states, formula, changed):
    assert formula in script
    script = script.replace(formula, changed)
    parts = (judged_states[start : start + 30] for start in range(0, 300, 30))
    assert any(disagreements(some, in_node([state for state, _ in some], script)) for some in parts)


# ---- the page --------------------------------------------------------------------------------------------------


def text(page, name: str) -> str:
    return page.find_element(By.ID, name).get_property("textContent")


def field(page, name: str):
    return page.find_element(By.ID, name)


def fill(page, name: str, value: str) -> None:
    page.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        field(page, name),
        value,
    )


def row_of(page) -> list[str]:
    return field(page, "numbers").get_property("value").split(", ")


@pytest.mark.parametrize(
    ("rule", "numbers", "candidates", "more"),
    [
        ("strict_greedy", ["0.5", "0.45", "0.05"], 2, {}),
        ("top_m(2) & additive(0.1)", ["2/5", "7/20", "1/4"], 1, {}),
        ("mars(9/10)", ["1/2", "9/20", "1/20"], 2, {"logit_ratio": "9/10"}),
        ("top_m(2) | multiplicative(0.4)", ["0.5", "0.2", "0.2", "0.1"], 1, {}),
    ],
)
def test_a_link_opens_the_page_at_its_example(browser, page_file, rule, numbers, candidates, more):
    browser.get("about:blank")
    browser.get(page_file.as_uri() + explorer_fragment(rule, numbers, candidates, **more))
    found = certificate(numbers, rule, candidates, DIGITS, **more)
    assert text(browser, "certificate") == str(found)
    assert f"--candidates {candidates} --digits 12" in text(browser, "command")
    WebDriverWait(browser, 5).until(lambda _: text(browser, "status"))
    assert browser.current_url == page_file.as_uri() + explorer_fragment(rule, numbers, candidates, **more)
    shown = browser.execute_script("return [...document.querySelectorAll('#tokens li')].map((each) => each.className)")
    assert [token for token, status in enumerate(shown) if status == "accepted"] == sorted(found.accepted)
    drafted = browser.execute_script(
        "return [...document.querySelectorAll('tbody tr')]"
        ".map((row) => [+row.cells[0].textContent, +row.cells[2].textContent])"
    )
    assert found.witness is not None
    assert dict(map(tuple, drafted)) == pytest.approx({x: float(q) for x, q in enumerate(found.witness)}, rel=1e-11)


def test_bars_are_dragged_by_mouse_and_by_keys(page):
    first = page.find_element(By.CSS_SELECTOR, "#tokens input")
    ActionChains(page).move_to_element(first).click_and_hold().move_by_offset(
        first.size["width"] // 4, 0
    ).release().perform()
    row = row_of(page)
    assert float(row[0]) == pytest.approx(0.75, abs=0.02)
    assert sum(map(Fraction, row)) == 1
    assert float(row[1]) / float(row[2]) == pytest.approx(9, rel=0.02)  # the others keep their proportions
    assert text(page, "certificate") == str(certificate(row, "strict_greedy", 2, DIGITS))
    first.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert float(row_of(page)[0]) == pytest.approx(float(row[0]) + 0.01)
    first.send_keys(Keys.END)
    assert row_of(page) == ["1", "0", "0"]
    assert text(page, "certificate") == str(certificate(["1", "0", "0"], "strict_greedy", 2, DIGITS))
    first.send_keys(Keys.ARROW_LEFT)
    assert sum(map(Fraction, row_of(page))) == 1


def test_rules_are_chosen_and_their_parameters_moved(page):
    Select(field(page, "choice")).select_by_visible_text("tensorrt_llm_relaxed")
    assert field(page, "rule").get_property("value") == "top_m(10) & additive(3/5)"
    assert text(page, "certificate") == "∞"
    sliders = page.find_elements(By.CSS_SELECTOR, "#parameters input")
    sliders[0].send_keys(Keys.HOME)
    assert field(page, "rule").get_property("value") == "top_m(1) & additive(3/5)"
    assert text(page, "certificate") == str(certificate(["0.5", "0.45", "0.05"], "strict_greedy", 2, DIGITS))
    Select(field(page, "example")).select_by_index(1)
    assert "absolute" in field(page, "rule").get_property("value")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("numbers", "0.5, 0.4", "The probabilities sum to 0.9, not 1"),
        ("numbers", "0.5, half", "Probability 1 is “half”"),
        ("numbers", "1.5, -0.5", "Probability 1 is negative"),
        ("numbers", "", "The row is empty"),
        ("numbers", "1", "leaves nothing to draft"),
        ("numbers", "1/0, 1", "divides by zero"),
        ("numbers", "NaN, 1", "Probability 0 is “NaN”"),
        ("numbers", "0, 0", "at least one must be positive"),
        ("numbers", "1e-99999, 1", "write a decimal"),
        ("candidates", "0", "a whole number from 1 to 2"),
        ("candidates", "3", "a whole number from 1 to 2"),
        ("candidates", "", "a whole number from 1 to 2"),
        ("rule", "additive(2)", "additive: t = 2 must be a number from 0 to 1"),
        ("rule", "additive", "additive takes t"),
        ("rule", "top_m(1.5)", "must be a whole number"),
        ("rule", "greedy", "No rule is called “greedy”"),
        ("rule", "constructor", "No rule is called “constructor”"),
        ("rule", "strict_greedy and top_m(2)", "“and” is unexpected"),
        ("rule", "(top_m(2)", "A parenthesis is not closed"),
        ("rule", "", "a name is missing"),
        ("rule", "vllm_greedy", "vllm_greedy stands for strict_greedy"),
    ],
)
def test_bad_input_is_refused_in_words_beside_its_field(page, name, value, says):
    fill(page, name, value)
    error = field(page, f"{name}-error")
    assert says in error.text
    assert field(page, name).get_attribute("aria-invalid") == "true"
    assert f"{name}-error" in field(page, name).get_attribute("aria-describedby")
    assert not field(page, "found").is_displayed()
    fill(page, name, {"numbers": "0.5, 0.3, 0.2", "rule": "strict_greedy", "candidates": "1"}[name])
    assert not error.is_displayed()
    assert field(page, "found").is_displayed()


@pytest.mark.parametrize(
    ("kind", "numbers", "rule", "name", "says"),
    [
        ("logits", "1, -99999", "strict_greedy", "numbers", "write -inf for a token that is masked"),
        ("logits", "-inf, -inf", "strict_greedy", "numbers", "at least one must be finite"),
        ("logits", "0, -1", "mars(1/2)", "numbers", "the largest, which is 0"),
        ("logprobs", "-2, -1, -3", "strict_greedy", "numbers", "not in descending order"),
        ("logprobs", "-0.1, -0.2", "strict_greedy", "numbers", "more than 1"),
        ("logprobs", "0.5, -1", "strict_greedy", "numbers", "is above 0"),
        ("logprobs", "-0.9, -1.2", "top_m(2)", "numbers", "The list ends too soon"),
        ("logprobs", "-0.9", "strict_greedy", "numbers", "The list ends too soon"),
        ("logprobs", "-0.9, -1.2, -3", "typical(9/100, 3/10)", "rule", "the entropy of the whole row"),
        ("probabilities", "0.5, 0.3, 0.2", "mars(1/2)", "ratio", "give z₍₂₎/z₍₁₎"),
    ],
)
def test_what_a_row_cannot_tell_is_refused(page, kind, numbers, rule, name, says):
    page.find_element(By.CSS_SELECTOR, f"[value={kind}]").click()
    fill(page, "numbers", numbers)
    fill(page, "candidates", "1")
    fill(page, "rule", rule)
    assert says in field(page, f"{name}-error").text


def test_markup_in_a_link_is_text(browser, page_file):
    attack = "<img src=x onerror=\"document.title='pwned'\">"
    browser.get("about:blank")
    browser.get(page_file.as_uri() + f"#rule={quote(attack)}&probabilities={quote(attack)}&candidates={quote(attack)}")
    assert "pwned" not in browser.title
    assert browser.find_elements(By.TAG_NAME, "img") == []
    assert "“<img”" in field(browser, "rule-error").text or "“<”" in field(browser, "rule-error").text
    for name in ("rule", "numbers", "candidates"):
        assert field(browser, name).get_property("value") == attack


def test_nothing_is_asked_of_any_server(page):
    logged = page.capabilities["browserName"] != "firefox"
    if logged:
        page.get_log("browser")  # of pages that other tests opened
        page.refresh()
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    refused = page.execute_async_script(
        "const done = arguments[0]; addEventListener('securitypolicyviolation', (e) => done(e.effectiveDirective));"
        "fetch('https://example.org').catch(() => {})"
    )
    assert refused == "connect-src"
    if logged:
        said = [each for each in page.get_log("browser") if "example.org" not in each["message"]]
        assert said == []


def test_every_control_has_a_name_and_ids_are_unique(page):
    fill(page, "rule", "mars(1/2)")
    controls = page.find_elements(By.CSS_SELECTOR, "input, select, textarea, button, summary")
    assert len(controls) > 12
    assert [
        each.get_attribute("outerHTML") for each in controls if each.is_displayed() and not each.accessible_name
    ] == []
    ids = page.execute_script("return [...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))
    token = page.find_element(By.CSS_SELECTOR, "#tokens input")
    fill(page, "rule", "strict_greedy")
    assert token.get_attribute("aria-valuetext") == "0.5, accepted, pooled; the worst drafter gives it 0.275"


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_shows_it_without_scrolling_sideways(page, width):
    if page.capabilities["browserName"] == "firefox":
        pytest.skip("no Firefox window is so narrow")
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        fill(page, "rule", "typical_floor(9/100, 3/10, 1/100000) | top_m(2)")
        page.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        assert field(page, "glance").is_displayed()
        small = page.execute_script(
            "return [...document.querySelectorAll('button, select, textarea, #tokens input, label:has(input)')]"
            ".filter((each) => each.offsetParent && each.getBoundingClientRect().height < 28).length"
        )
        assert small == 0  # for a finger
        bar = page.find_element(By.CSS_SELECTOR, "#tokens input")
        page.execute_script("arguments[0].scrollIntoView({block: 'center'})", bar)
        box = page.execute_script("return arguments[0].getBoundingClientRect().toJSON()", bar)
        before, y = row_of(page), box["y"] + box["height"] / 2
        for kind, share in (("touchStart", 0.5), ("touchMove", 0.7), ("touchMove", 0.9), ("touchEnd", None)):
            points = [] if share is None else [{"x": box["x"] + share * box["width"], "y": y}]
            page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        assert float(row_of(page)[0]) > float(before[0]) + 0.2
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
