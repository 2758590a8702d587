// The page: its fields are the state, the address holds it, and every change shows its certificate anew.

const MOST_BARS = 24;
const UNITS = 10000; // what dragging shares out: probabilities of four decimals
const LONGEST_ADDRESS = 20000;
const KINDS = ["probabilities", "logits", "logprobs"];
const FIELDS = ["numbers", "rule", "candidates", "ratio"];
const START = { rule: "strict_greedy", probabilities: "0.5, 0.45, 0.05", candidates: "2" };

const find = (id) => document.getElementById(id);
const tokenNames = (ids, most = 12) =>
  (ids.length ? ids.slice(0, most).join(", ") : "none") + (ids.length > most ? `, … (${ids.length} tokens)` : "");

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/** Twelve digits. */
function shown(value) {
  if (value === Infinity) return "∞";
  if (value === 0) return "0";
  const [digits, exponent] = value.toExponential(11).split("e").map((part) => part.replace("+", ""));
  return exponent >= -6 && exponent < 6 ? value.toPrecision(12) : `${digits} × 10^${exponent}`;
}

const brief = (value) => (value === 0 ? "0" : value < 1e-4 ? value.toExponential(1) : String(Number(value.toPrecision(4))));

// ---- the state ------------------------------------------------------------------------------------------------------

function readState() {
  return {
    kind: document.querySelector("[name=kind]:checked").value,
    numbers: find("numbers").value,
    rule: find("rule").value,
    candidates: find("candidates").value,
    normalize: find("normalize").checked,
    logitRatio: find("ratio").value,
  };
}

function writeState(given) {
  const kind = KINDS.find((each) => given[each] !== undefined) ?? "probabilities";
  document.querySelector(`[value=${kind}]`).checked = true;
  find("numbers").value = given[kind] ?? START.probabilities;
  find("rule").value = given.rule ?? START.rule;
  find("candidates").value = given.candidates ?? "1";
  find("normalize").checked = given.normalize === "1";
  find("ratio").value = given.logit_ratio ?? "";
}

function readAddress() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  writeState(Object.keys(given).length ? given : START);
  show();
}

function writeAddress({ kind, numbers, rule, candidates, normalize, logitRatio }) {
  const given = { rule, [kind]: numbers.replace(/[\s,;]+/g, ","), candidates };
  if (normalize) given.normalize = "1";
  if (logitRatio) given.logit_ratio = logitRatio;
  const encode = (text) => encodeURIComponent(text).replace(/%2C/g, ",").replace(/%2F/g, "/");
  const fragment = Object.entries(given).map(([key, value]) => `${key}=${encode(value)}`).join("&");
  if (fragment.length < LONGEST_ADDRESS) history.replaceState(null, "", `#${fragment}`);
}

// ---- what is shown --------------------------------------------------------------------------------------------------

function show() {
  const state = readState();
  showNeeds(state);
  let result = null;
  let refused = null;
  try {
    result = certify(state);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refused = error;
  }
  for (const field of FIELDS) {
    const wrong = refused?.field === field;
    find(`${field}-error`).textContent = wrong ? refused.message : "";
    find(`${field}-error`).hidden = !wrong;
    find(field).setAttribute("aria-invalid", String(wrong));
  }
  find("found").hidden = find("tokens").hidden = !result;
  find("stopped").hidden = !refused;
  announce(refused ? refused.message : `C = ${brief(result.value)} nats, ${result.count} accepted`);
  if (!result) return;
  showTokens(result, state);
  showCertificate(result);
  showMargin(result);
  showTable(result);
  showCommand(result, state);
  writeAddress(state);
}

let announcement;

/** To screen readers, once the reader has stopped dragging or typing. */
function announce(text) {
  clearTimeout(announcement);
  announcement = setTimeout(() => (find("status").textContent = text), 700);
}

/** The rule in words, a slider for each of its parameters, and the field for a ratio of logits where it is needed. */
function showNeeds({ kind, rule: text }) {
  find("normalize-field").hidden = kind !== "probabilities";
  let rule = null;
  try {
    rule = readRule(text);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
  const parts = rule ? atoms(rule) : [];
  find("ratio-field").hidden = kind === "logits" || !parts.some(({ family }) => RULES[family].needsLogits);
  find("rule-says").textContent = parts.map(({ family }) => RULES[family].says).join(rule?.any ? " Or: " : " And: ");
  const sliders = parts.flatMap((atom) => RULES[atom.family].parameters.map((parameter) => slider(rule, atom, parameter)));
  const own = find("parameters");
  // A slider that is being moved stays the element that it is.
  if (own.children.length === sliders.length && own.contains(document.activeElement)) {
    sliders.forEach((node, k) => (own.children[k].querySelector("output").value = node.querySelector("output").value));
    sliders.forEach((node, k) => (own.children[k].querySelector("input").oninput = node.querySelector("input").oninput));
  } else own.replaceChildren(...sliders);
}

function slider(rule, atom, { name, meaning, low, high, whole }) {
  const value = atom.values[name];
  const input = element("input", {
    type: "range", min: toNumber(low), max: high ? toNumber(high) : 20, step: whole ? 1 : 0.01, value: toNumber(value), title: meaning,
  });
  input.setAttribute("aria-label", `${atom.family}: ${name}, ${meaning}`);
  input.oninput = () => {
    atom.values[name] = readNumber(input.value, name, "rule");
    find("rule").value = ruleText(rule);
    show();
  };
  return element("div", { className: "slider" }, element("span", { textContent: name }), input, element("output", { value: fraction(value) }));
}

function showTokens({ row, accepted, competitors, pool, level }, { kind }) {
  const all = row.size <= MOST_BARS;
  const ids = all ? row.weights.map((_, token) => token) : row.order.slice(0, MOST_BARS);
  const [passing, rivals, moved] = [accepted, competitors, pool].map((each) => new Set(each));
  const list = find("tokens");
  while (list.children.length > ids.length) list.lastChild.remove();
  while (list.children.length < ids.length) list.append(tokenRow());
  ids.forEach((token, place) => {
    const item = list.children[place];
    const target = quotient(row.weights[token], row.total);
    const status = passing.has(token) ? "accepted" : rivals.has(token) ? "competitor" : "other";
    item.className = status;
    const [name, track, number] = item.children;
    name.firstChild.textContent = `token ${token}`;
    name.lastChild.textContent = status + (moved.has(token) ? ", pooled" : "");
    number.textContent = brief(target);
    const [bar, draft, input] = track.children;
    bar.style.setProperty("--target", target);
    draft.hidden = !moved.has(token);
    if (!draft.hidden) draft.style.setProperty("--draft", toNumber(level));
    input.disabled = !all || kind === "logprobs";
    input.dataset.token = token;
    if (input !== document.activeElement) input.value = target;
    input.setAttribute("aria-label", `probability of token ${token}`);
    const drafted = draft.hidden ? "" : `; the worst drafter gives it ${brief(toNumber(level))}`;
    input.setAttribute("aria-valuetext", `${brief(target)}, ${name.lastChild.textContent}${drafted}`);
  });
  find("tools").hidden = kind !== "probabilities" || !all;
}

function tokenRow() {
  const input = element("input", { type: "range", min: 0, max: 1, step: 0.005 });
  const track = element("div", { className: "track" }, element("div", { className: "bar" }), element("div", { className: "draft" }), input);
  return element("li", {}, element("span", { className: "name" }, "", element("small")), track, element("span", { className: "number" }));
}

function showCertificate({ row, m, value, level, accepted, competitors, pool, logLoss, ceiling: highest }) {
  find("certificate").value = shown(value);
  const among = m === 1 ? "its likeliest token is accepted" : `an accepted token is among its ${m} likeliest`;
  find("meaning").textContent =
    value === Infinity ? `Fewer than ${m === 1 ? "one token is" : `${m} tokens are`} rejected: every drafter is accepted.`
    : value === 0 ? "The target itself can be rejected here, so that no drafter is certain to be accepted, however near it comes."
    : `Whatever the drafter: if KL(target‖draft) < C, ${among}. The drafter that the marks show is at C and can be rejected.`;
  find("formula").hidden = !pool.length;
  const entries = {
    "Accepted set": tokenNames(accepted),
    Competitors: tokenNames(competitors),
    Pool: tokenNames(pool),
    "Level c": level === null ? "none" : shown(toNumber(level)) + (level.d < 10000n && level.d > 1n ? ` = ${fraction(level)}` : ""),
    "Ceiling ln(1 + m p₍₁₎)": shown(highest),
    "Log-loss allowed": shown(logLoss),
    "Mass not listed": row.rest ? shown(quotient(row.rest, row.total)) : null,
  };
  const told = Object.entries(entries).filter(([, text]) => text !== null);
  find("numbers-found").replaceChildren(
    ...told.flatMap(([term, text]) => [element("dt", { textContent: term }), element("dd", { textContent: text })]),
  );
}

function showMargin({ value, margin, bounds, ceiling: highest }) {
  find("margin").hidden = margin === undefined;
  if (margin === undefined) return;
  const told = `The two likeliest tokens are g = p₍₁₎ − p₍₂₎ = ${shown(margin)} apart.`;
  find("where").hidden = find("low").parentElement.hidden = !bounds;
  find("margin-says").textContent = bounds
    ? `${told} Of all targets with this margin, over any vocabulary, the certificate is at least the left number and at most ` +
      `the right one${bounds.low.sharp && bounds.high.sharp ? "; neither can be improved" : ""}.`
    : `${told} No bound of the certificate is known for this rule from a margin alone.`;
  if (!bounds) return;
  const [low, high] = [bounds.low.value, bounds.high.value];
  const end = high === Infinity ? 2 * Math.max(highest, low === Infinity ? 0 : low) : high;
  const place = value === Infinity ? 1 : low === Infinity || end === low ? 0 : Math.min(1, Math.max(0, (value - low) / (end - low)));
  find("where").firstChild.style.setProperty("--place", place);
  find("where").setAttribute("aria-label", `C = ${shown(value)} lies between ${shown(low)} and ${shown(high)}`);
  find("low").textContent = shown(low);
  find("high").textContent = shown(high);
}

function showTable({ row, pool, level }) {
  find("table").hidden = level === null;
  if (level === null) return;
  const moved = new Set(pool);
  const rows = row.order.slice(0, 2 * MOST_BARS).map((token) => {
    const target = shown(quotient(row.weights[token], row.total));
    const cells = [token, target, moved.has(token) ? shown(toNumber(level)) : target];
    return element("tr", {}, ...cells.map((text) => element("td", { textContent: text })));
  });
  find("table").querySelector("tbody").replaceChildren(...rows);
}

function showCommand({ rule, m }, { kind, numbers, normalize, logitRatio }) {
  find("command-field").hidden = kind !== "probabilities";
  const row = numbers.trim().replace(/^\[|\]$/g, "").trim().replace(/[\s,;]+/g, ",");
  const ratio = find("ratio-field").hidden ? "" : ` --logit-ratio ${logitRatio}`;
  find("command").textContent =
    `draftcert certify --probs ${row} --rule "${ruleText(rule)}" --candidates ${m} --digits 12${normalize ? " --normalize" : ""}${ratio}`;
}

// ---- what the reader does -------------------------------------------------------------------------------------------

let dragged = null;

/** Gives a token its probability; the others share what is left as they shared it before the drag began. */
function drag(token, value) {
  const state = readState();
  if (dragged?.token !== token) dragged = { token, weights: certify(state).row.weights };
  writeRow(dragged.weights, token, Math.round(value * UNITS));
}

function writeRow(weights, token, units) {
  const others = weights.reduce((total, weight, x) => (x === token ? total : total + weight), 0n);
  const shares = weights.map((weight, x) => (x === token ? 0 : others ? quotient(weight * BigInt(UNITS - units), others) : (UNITS - units) / (weights.length - 1)));
  const whole = shares.map(Math.floor);
  whole[token] = units;
  const byRest = shares.map((share, x) => x).sort((a, b) => (shares[b] % 1) - (shares[a] % 1));
  for (let left = UNITS - whole.reduce((a, b) => a + b), k = 0; left > 0; left--, k++) whole[byRest[k]]++;
  document.querySelector("[value=probabilities]").checked = true;
  find("normalize").checked = false;
  find("numbers").value = whole.map((each) => String(each / UNITS)).join(", ");
  show();
}

function resize(change) {
  const entries = find("numbers").value.split(/[\s,;]+/).filter(Boolean);
  const kept = change > 0 ? [...entries, "0"] : entries.slice(0, -1);
  if (kept.length < 2) return;
  find("numbers").value = kept.join(", ");
  find("normalize").checked ||= change < 0 && Number(entries.at(-1)) !== 0;
  show();
}

function fillChoices() {
  const group = (label, options) => element("optgroup", { label }, ...options);
  const option = ([name, value]) => element("option", { value, textContent: name });
  find("choice").append(
    element("option", { value: "", textContent: "families and deployed presets" }),
    group("families", Object.values(RULES).map(({ example }) => option([example, example]))),
    group("as deployed", Object.entries(PRESETS).map(([name, text]) => option([name, text]))),
  );
  find("example").append(
    element("option", { value: "", textContent: "from the rules' records" }),
    ...Object.entries(EXAMPLES).map(([family, examples]) => group(family, examples.map(({ note, fragment }) => option([note, fragment])))),
  );
}

fillChoices();
find("state").addEventListener("submit", (event) => event.preventDefault());
find("state").addEventListener("input", ({ target }) => {
  if (target.closest("#tokens")) drag(Number(target.dataset.token), Number(target.value));
  else if (target.id && target.id !== "choice" && target.id !== "example") show();
});
find("state").addEventListener("change", ({ target }) => {
  dragged = null;
  if (target.name === "kind") show();
  if (target.id === "choice" && target.value) {
    find("rule").value = target.value;
    show();
  }
  if (target.id === "example" && target.value) location.hash = target.value;
});
find("more").addEventListener("click", () => resize(1));
find("fewer").addEventListener("click", () => resize(-1));
addEventListener("hashchange", readAddress);
readAddress();
