const content = JSON.parse(document.getElementById("content").textContent);
const rankers = Object.fromEntries(content.rankers.map((ranker) => [ranker.label, ranker]));
const labels = content.rankers.map((ranker) => ranker.label);
const signed = (x, digits = 4) => (x > 0 ? "+" : x < 0 ? "−" : "") + Math.abs(x).toFixed(digits);
const brief = (x) => (x === null || x === undefined ? "missing" : typeof x === "string" ? x : String(Number(x.toPrecision(4))));

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") made.addEventListener("click", value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function drawing(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const chart = (width, height, label, ...children) =>
  drawing("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);
const text = (x, y, words, anchor = "start") => drawing("text", { x, y, "text-anchor": anchor }, words);
const line = (x1, y1, x2, y2, kind) => drawing("line", { x1, y1, x2, y2, class: kind });
const scale = (low, high, from, to) => (x) => from + ((x - low) / (high - low || 1)) * (to - from);

// --- the table of metrics ---------------------------------------------------------------------------

function sortTable(button) {
  const head = button.closest("th"), key = button.dataset.key;
  const rising = head.getAttribute("aria-sort") === "descending" || (key === "label" && head.getAttribute("aria-sort") === "none");
  for (const other of by("table").querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const place = content.metrics.indexOf(key);
  const value = (row) => (key === "label" ? row.dataset.label : Number(row.dataset[place >= 0 ? `m${place}` : key]));
  const body = by("table").tBodies[0];
  const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
  body.append(...[...body.rows].sort((a, b) => (rising ? order(a, b) : order(b, a))));
}

// --- query by query -----------------------------------------------------------------------------------

function changes() {
  const metric = by("metric").value, up = content.maximise[metric] ? 1 : -1;
  const before = content.values[by("from").value][metric], after = content.values[by("to").value][metric];
  const rows = [];
  for (let q = 0; q < content.qid.length; q++) {
    if (before[q] === null || after[q] === null) continue;
    rows.push({ q, before: before[q], after: after[q], change: after[q] - before[q], gain: up * (after[q] - before[q]) });
  }
  return rows.sort((a, b) => a.gain - b.gain || a.q - b.q);
}

function showChanges() {
  const rows = changes(), from = by("from").value, to = by("to").value, metric = by("metric").value;
  const wins = rows.filter((row) => row.gain > 1e-9).length, losses = rows.filter((row) => row.gain < -1e-9).length;
  by("tally").textContent = `From ${from} to ${to}: ${wins} queries better, ${rows.length - wins - losses} as good, ${losses} worse by ${metric}.`;
  by("metric").dataset.tip = content.explained[metric];
  by("bars").replaceChildren(bars(rows, `Change of ${metric} from ${from} to ${to} of ${rows.length} queries, sorted`));
  const wanted = by("find").value.trim().toLowerCase();
  const shown = rows.filter((row) => !wanted || content.qid[row.q].toLowerCase().includes(wanted)).slice(0, 12);
  by("queries").tBodies[0].replaceChildren(...shown.map((row) => element("tr", {},
    element("th", { scope: "row" }, row.q in content.opened
      ? element("button", { type: "button", title: "open in the explorer", onclick: () => openQuery(row.q, true) }, content.qid[row.q]) : content.qid[row.q]),
    element("td", {}, row.before.toFixed(4)), element("td", {}, row.after.toFixed(4)),
    element("td", { class: row.gain < 0 ? "down" : row.gain > 0 ? "up" : "" }, signed(row.change)))));
}

function bars(rows, label) {
  const width = Math.max(300, by("bars").clientWidth || 960), left = 42, height = 150;
  const most = Math.max(0, ...rows.map((row) => row.change)), least = Math.min(0, ...rows.map((row) => row.change));
  const y = most > least ? scale(most, least, 8, height - 8) : () => height / 2;
  const kept = rows.length > 960 ? rows.filter((_, k) => k % Math.ceil(rows.length / 960) === 0) : rows;
  const wide = Math.max(0.6, (width - left) / kept.length - 0.6), at = scale(0, kept.length || 1, left, width);
  const marks = kept.map((row, k) => drawing("rect", {
    x: at(k), width: wide, y: Math.min(y(0), y(row.change)), height: Math.max(0.5, Math.abs(y(row.change) - y(0))),
    class: row.gain < 0 ? "bad" : "good" }, drawing("title", {}, `query ${content.qid[row.q]}: ${signed(row.change)}`)));
  const ends = [[0, y(0) + 4], ...(most ? [[most, 14]] : []), ...(least ? [[least, height - 4]] : [])];
  const apart = ends.filter(([value, at]) => !value || Math.abs(at - ends[0][1]) > 12);
  return chart(width, height, label, line(left, y(0), width, y(0), "rule"), ...apart.map(([value, at]) => text(0, at, signed(value, 2))), ...marks);
}

// --- explorer -------------------------------------------------------------------------------------------

let current = null, picked = [];

function openQuery(q, scroll = false) {
  current = Number(q);
  picked = [];
  by("query").value = String(q);
  showRankings();
  if (scroll) { by("explorer").scrollIntoView(); by("query").focus({ preventScroll: true }); }
}

function showRankings() {
  const sides = [by("from").value, by("to").value], query = content.opened[current];
  by("left-name").textContent = sides[0];
  by("right-name").textContent = sides[1];
  by("query-name").textContent = content.qid[current];
  const orders = sides.map((label) => query.documents.map((_, d) => d).sort((a, b) => query.ranks[label][a] - query.ranks[label][b]));
  const lists = orders.map((order, side) => element("ol", { "aria-label": `ranking by ${sides[side]}` }, ...order.map((d) => element("li", {}, pickButton(query, d, sides[side])))));
  by("rankings").replaceChildren(lists[0], moves(query, orders), lists[1]);
  showExplanation();
}

function pickButton(query, d, label) {
  const rank = query.ranks[label][d], name = query.documents[d], grade = query.grades[d];
  return element("button", { type: "button", "aria-pressed": picked.includes(d), "data-document": d,
    "aria-label": `rank ${rank}: document ${name}, grade ${grade}`, onclick: () => pick(d) },
    element("span", { class: "rank" }, String(rank)), element("span", { class: "name" }, name),
    element("span", { class: "grade" }, `grade ${brief(grade)}`));
}

function pick(d) {
  picked = picked.includes(d) ? picked.filter((other) => other !== d) : [...picked, d].slice(-2);
  for (const button of by("rankings").querySelectorAll("button")) button.setAttribute("aria-pressed", picked.includes(Number(button.dataset.document)));
  showExplanation();
}

function moves(query, orders) {
  const count = query.documents.length, height = 100 * count;
  const lines = orders[0].map((d, k) => {
    const j = orders[1].indexOf(d), kind = j < k ? "a" : j > k ? "b" : "axis";
    return drawing("path", { class: `move ${kind}`, d: `M0 ${100 * k + 50} C 50 ${100 * k + 50}, 50 ${100 * j + 50}, 100 ${100 * j + 50}`, "vector-effect": "non-scaling-stroke" });
  });
  const made = chart(100, height, "movements between the two rankings", ...lines);
  made.setAttribute("preserveAspectRatio", "none");
  return element("div", { class: "moves" }, made);
}

function showExplanation() {
  const query = content.opened[current];
  if (picked.length < 2) {
    const more = query.length > query.documents.length ? ` ${query.documents.length} of its ${query.length} documents are shown: the best of every ranker.` : "";
    by("explanation").replaceChildren(element("p", { class: "soft" }, `Choose two documents to see why one is ranked above the other.${more}`));
    return;
  }
  by("explanation").replaceChildren(element("div", { class: "split" }, ...[by("from").value, by("to").value].map((label) => pairTable(query, label))));
}

function pairTable(query, label) {
  const [upper, lower] = [...picked].sort((a, b) => query.ranks[label][a] - query.ranks[label][b]);
  const heading = element("h3", {}, `${label}: ${query.documents[upper]} (rank ${query.ranks[label][upper]}) above ${query.documents[lower]} (rank ${query.ranks[label][lower]})`);
  const parts = query.parts[label];
  if (!parts) return element("div", {}, heading, element("p", { class: "soft" }, "This model's score is not a sum over features; `rankwright explain` splits the difference of two documents."));
  const names = rankers[label].names, both = [parts.values[upper], parts.values[lower]];
  const rows = parts.by.map((feature, k) => ({
    name: names[feature], part: both[0][k] - both[1][k],
    values: `${brief(query.features[feature][upper])} against ${brief(query.features[feature][lower])}` }));
  rows.push({ name: "everything else", part: both[0].at(-1) - both[1].at(-1), values: "" });
  const lead = rows.reduce((sum, row) => sum + row.part, 0);
  rows.sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...["feature", "values", "adds"].map((word) => element("th", { scope: "col" }, word)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, element("th", { scope: "row" }, row.name), element("td", {}, row.values),
      element("td", { class: row.part < 0 ? "down" : "up" }, signed(row.part)))),
      element("tr", {}, element("th", { scope: "row" }, "lead"), element("td", {}), element("td", { class: "lead" }, signed(lead)))));
  return element("div", {}, heading, table);
}

// --- panels ---------------------------------------------------------------------------------------------

const panel = (label, note, drawn) => element("div", { class: "panel" }, element("h3", {}, label), drawn, element("small", {}, note));

function curvePanel(ranker) {
  const curve = ranker.curve, width = 300, height = 150;
  if (!curve || curve.rounds.length < 2) return panel(ranker.label, `${ranker.kind}; no learning curve`, element("p", { class: "soft" }, "Trained in one step."));
  const all = [...curve.valid, ...(curve.train || [])], x = scale(curve.rounds[0], curve.rounds.at(-1), 40, width - 6), y = scale(Math.min(...all), Math.max(...all), height - 22, 8);
  const path = (values, kind) => drawing("polyline", { class: kind, points: values.map((v, k) => `${x(curve.rounds[k])},${y(v)}`).join(" ") });
  const best = curve.best.reduce((a, b) => a + b, 0) / curve.best.length;
  const drawn = chart(width, height, `${ranker.label}: ${curve.metric} by iteration`, line(40, height - 22, width - 6, height - 22, "axis"),
    ...(curve.train ? [path(curve.train, "b")] : []), path(curve.valid, "a"), line(x(Math.min(best, curve.rounds.at(-1))), 8, x(Math.min(best, curve.rounds.at(-1))), height - 22, "rule"),
    text(0, 14, Math.max(...all).toFixed(3)), text(0, height - 24, Math.min(...all).toFixed(3)),
    text(40, height - 6, String(curve.rounds[0])), text(width - 6, height - 6, String(curve.rounds.at(-1)), "end"));
  return panel(ranker.label, `${curve.metric}: validation blue, training orange and dashed; iteration ${curve.best.join(", ")} selected; ${ranker.kind}`, drawn);
}

function costChart() {
  const metric = content.metrics[0], width = Math.max(300, Math.min(760, by("cost-chart").clientWidth || 540)), height = 300;
  const fitted = content.rankers.filter((ranker) => ranker.seconds !== null && ranker.means[metric][0] !== null), seconds = fitted.map((ranker) => Math.max(1e-3, ranker.seconds)), figures = fitted.map((ranker) => ranker.means[metric].map((x) => x ?? ranker.means[metric][0])); // no interval: a point
  if (!fitted.length) return element("p", { class: "soft" }, "Nothing was fitted here.");
  const x = scale(Math.log10(Math.min(...seconds)), Math.log10(Math.max(...seconds)), 56, width - 20);
  const low = Math.min(...figures.map((f) => f[1])), high = Math.max(...figures.map((f) => f[2])), y = scale(low, high, height - 40, 14);
  const points = fitted.map((ranker, k) => ({ ranker, at: x(Math.log10(seconds[k])), y: y(figures[k][0]), low: y(figures[k][1]), high: y(figures[k][2]), seconds: seconds[k], mean: figures[k][0] }));
  const marks = points.map((point) => drawing("g", {}, drawing("title", {}, `${point.ranker.label}: ${metric} ${point.mean.toFixed(4)}, ${point.seconds.toPrecision(3)} s`),
    line(point.at, point.low, point.at, point.high, "a"), drawing("circle", { cx: point.at, cy: point.y, r: 5, class: "a-fill" })));
  const label = `${metric} against training time: ${points.map((point) => `${point.ranker.label} ${point.mean.toFixed(4)} in ${point.seconds.toPrecision(3)} s`).join(", ")}`;
  return chart(width, height, label, line(46, height - 32, width - 10, height - 32, "axis"), ...pointNames(points, width, height - 40), ...marks,
    text(0, 16, high.toFixed(3)), text(0, height - 38, low.toFixed(3)), text(46, height - 14, `${Math.min(...seconds).toPrecision(2)} s`),
    text(width - 10, height - 14, `${Math.max(...seconds).toPrecision(2)} s`, "end"));
}

// Names stand beside their points, on the side with more room; where two would overlap, the lower one
// moves to the next free line, with a thin line back to its point.
function pointNames(points, width, bottom) {
  const taken = points.flatMap((point) => [{ left: point.at - 6, right: point.at + 6, top: point.y - 6, bottom: point.y + 6 },
    { left: point.at - 2, right: point.at + 2, top: point.high, bottom: point.low }]), made = [];
  for (const point of [...points].sort((a, b) => a.y - b.y)) {
    const name = point.ranker.label, long = Math.min(34, Math.max(8, Math.floor(width / 16)));
    const words = name.length > long ? `${name.slice(0, long - 1)}…` : name, wide = 6.4 * words.length;
    const place = (side, step) => {
      const left = side > 0 ? point.at + 10 : point.at - 10 - wide, middle = point.y + 13 * step;
      return { side, step, left, right: left + wide, top: middle - 6, bottom: middle + 6 };
    };
    const sides = point.at + 10 + wide < width ? [1, -1] : [-1, 1], steps = [0, -1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6, 6, -7, 7, -8, 8];
    const free = (box) => box.left >= 40 && box.right <= width && box.top >= 0 && box.bottom <= bottom &&
      !taken.some((other) => box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom);
    const box = steps.flatMap((step) => sides.map((side) => place(side, step))).find(free) || place(sides[0], 0);
    taken.push(box);
    const end = box.side > 0 ? box.left - 2 : box.right + 2;
    if (box.step) made.push(line(point.at, point.y, end, box.top + 6, "axis"));
    made.push(text(box.side > 0 ? box.left : box.right, box.bottom - 2, words, box.side > 0 ? "start" : "end"));
  }
  return made;
}

function costTable() {
  const metric = content.metrics[0], cells = (ranker) => [ranker.means[metric][0]?.toFixed(4) ?? "–", ranker.seconds === null ? "–" : ranker.seconds.toPrecision(3), ranker.bytes === null ? "–" : `${Math.round(ranker.bytes / 1000).toLocaleString("en")} kB`, ranker.kind];
  return element("table", { class: "names" }, element("thead", {}, element("tr", {}, ...["ranker", metric, "seconds", "file", "model"].map((word) => element("th", { scope: "col" }, word)))),
    element("tbody", {}, ...content.rankers.map((ranker) => element("tr", {}, element("th", { scope: "row" }, ranker.label), ...cells(ranker).map((cell) => element("td", {}, cell))))));
}

function featurePanel(ranker) {
  const top = ranker.importance.slice(0, 10), height = 20 * top.length + 6;
  if (!top.length) return panel(ranker.label, ranker.kind, element("p", { class: "soft" }, "Its score is not a sum over features."));
  const x = scale(0, top[0][1], 0, 150);
  const drawn = chart(300, height, `${ranker.label}: ${top.map(([name, value]) => `${name} ${brief(value)}`).join(", ")}`,
    ...top.flatMap(([name, value], k) => [drawing("rect", { x: 130, y: 20 * k + 4, width: Math.max(1, x(value)), height: 13, class: "a-fill" }), text(124, 20 * k + 15, name.length > 20 ? `${name.slice(0, 19)}…` : name, "end")]));
  return panel(ranker.label, ranker.kind, drawn);
}

function gradePanel(ranker) {
  const rows = ranker.grades.length > 12 ? ranker.grades.filter((_, k) => k % Math.ceil(ranker.grades.length / 12) === 0) : ranker.grades;
  const height = 24 * rows.length + 24, x = scale(Math.min(...rows.map((r) => r[1])), Math.max(...rows.map((r) => r[5])), 40, 292);
  const drawn = chart(300, height, `${ranker.label}: median score by grade ${rows.map((r) => `${r[0]}: ${r[3]}`).join(", ")}`,
    ...(x(0) > 40 && x(0) < 292 ? [line(x(0), 0, x(0), height - 16, "axis"), text(x(0), height - 2, "0", "middle")] : []),
    ...rows.flatMap(([grade, low, first, middle, third, high], k) => [text(30, 24 * k + 18, `${grade}`, "end"), line(x(low), 24 * k + 14, x(high), 24 * k + 14, "rule"),
      drawing("rect", { x: x(first), width: Math.max(1, x(third) - x(first)), y: 24 * k + 8, height: 12, class: "a-fill", opacity: 0.55 }),
      drawing("rect", { x: x(middle) - 1.5, width: 3, y: 24 * k + 5, height: 18, class: "b-fill" })]));
  return panel(ranker.label, "grade, and scores in standard deviations", drawn);
}

// --- start ----------------------------------------------------------------------------------------------

function fill(select, values, chosen, shown = (value) => value) {
  select.replaceChildren(...values.map((value) => element("option", { value }, shown(value))));
  select.value = chosen;
}

function bestOther() {
  const metric = content.metrics[0], up = content.maximise[metric] ? 1 : -1;
  const others = labels.filter((label) => label !== content.baseline);
  return others.sort((a, b) => up * (rankers[b].means[metric][0] - rankers[a].means[metric][0]))[0] || content.baseline;
}

function start() {
  startTheme();
  startTips();
  for (const button of by("table").querySelectorAll("thead button[data-key]")) button.addEventListener("click", () => sortTable(button));
  fill(by("from"), labels, content.baseline);
  fill(by("to"), labels, bestOther());
  fill(by("metric"), Object.keys(content.values[labels[0]]), content.metrics[0]);
  const opened = Object.keys(content.opened);
  fill(by("query"), opened, opened[0], (q) => content.qid[q]);
  by("opened").textContent = opened.length === content.qid.length ? `All ${opened.length} queries can be opened.`
    : `${opened.length} of ${content.qid.length.toLocaleString("en")} queries can be opened: those that differ most from ${content.baseline}, and a sample of the rest.`;
  for (const id of ["from", "to", "metric"]) by(id).addEventListener("change", () => { showChanges(); showRankings(); });
  by("find").addEventListener("input", showChanges);
  by("query").addEventListener("change", () => openQuery(by("query").value));
  showChanges();
  openQuery(opened[0]);
  by("curve-panels").append(...content.rankers.map(curvePanel));
  by("cost-chart").append(costChart());
  addEventListener("resize", () => { by("cost-chart").replaceChildren(costChart()); showChanges(); });
  by("cost-table").append(costTable());
  by("feature-panels").append(...content.rankers.map(featurePanel));
  by("grade-panels").append(...content.rankers.map(gradePanel));
}

start();
