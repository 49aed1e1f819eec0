/* The page: head, plots, incidents, foot. Every text goes in as text, never as markup. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const T = DATA.texts;

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false && c !== ""));
  return node;
}

/* The plots of one run, with the view of steps that they share. */
class Board {
  constructor(run, onChoose) {
    Object.assign(this, { run, onChoose, texts: T, branch: null, branches: run.branches, chosen: null, filter: "" });
    this.sync = uPlot.sync("poise");
    this.cache = new Map();
    this.arrays = (index) => { if (!this.cache.has(index)) this.cache.set(index, decode(run.arrays[index])); return this.cache.get(index); };
    this.node = el("div", { class: "plots" });
    this.watcher = new IntersectionObserver((entries) => entries.forEach((e) => {
      e.target.plot.shown = e.isIntersecting;
      if (e.isIntersecting && !e.target.plot.chart) e.target.plot.draw();
    }), { rootMargin: "300px" });
    this.resizer = new ResizeObserver(() => this.resize());
    this.resizer.observe(this.node);
    this.build();
  }

  build() {
    this.close();
    const parts = this.run.series.filter((s) => this.branch === null || s.stretches.some((p) => p.branch === this.branch));
    this.plots = parts.map((s) => new Plot(this, s));
    this.extent = this.measure();
    this.view = { from: this.extent[0], to: this.extent[1] };
    const known = this.plots.filter((p) => !p.series.name.startsWith("other/")), other = this.plots.filter((p) => p.series.name.startsWith("other/"));
    this.node.replaceChildren(...known.map((p) => p.figure));
    if (other.length) this.node.append(el("h2", {}, T.other), ...other.map((p) => p.figure));
    this.plots.forEach((p) => this.watcher.observe(p.figure));
    this.narrow(this.filter);
  }

  close() {
    (this.plots || []).forEach((p) => { this.watcher.unobserve(p.figure); p.erase(); });
  }

  measure() {
    let from = Infinity, to = -Infinity;
    for (const plot of this.plots) for (const s of plot.series.stretches) {
      if (this.branch !== null && s.branch !== this.branch) continue;
      const x = this.arrays(s.x);
      from = Math.min(from, x[0]);
      to = Math.max(to, x[x.length - 1]);
    }
    if (!(from < to)) { from = Number.isFinite(from) ? from - 1 : 0; to = from + 2; }
    return [from, to];
  }

  incidents() { return this.run.incidents.filter((i) => this.branch === null || i.branch === this.branch); }
  events() { return this.run.events.filter((e) => this.branch === null || e.branch === this.branch); }

  show(from, to) {
    const [first, last] = this.extent, least = Math.min(2, last - first);
    const span = Math.min(Math.max(to - from, least), last - first);
    const start = Math.min(Math.max(from, first), last - span);
    this.view = { from: start, to: start + span };
    for (const p of this.plots) if (p.chart) p.chart.setScale("x", { min: this.view.from, max: this.view.to });
  }

  reset() { this.show(...this.extent); }
  pan(share) { const { from, to } = this.view, by = (to - from) * share; this.show(from + by, to + by); }
  zoom(factor, at) {
    const { from, to } = this.view, centre = at ?? (from + to) / 2;
    this.show(centre - (centre - from) * factor, centre + (to - centre) * factor);
  }

  choose(incident) {
    this.chosen = incident;
    this.redraw();
  }

  goTo(incident) {
    const end = incident.end ?? this.extent[1];
    const margin = Math.max((Math.min(end, incident.onset + (this.extent[1] - this.extent[0]) / 4) - incident.onset) * 0.6, (this.extent[1] - this.extent[0]) * 0.04);
    this.show(incident.onset - margin, Math.min(end, incident.onset + 4 * margin) + margin);
  }

  redraw() { for (const p of this.plots) if (p.chart) p.chart.redraw(false); }
  restyle() { for (const p of this.plots) if (p.chart) p.draw(); }
  setLog(on) { for (const p of this.plots) p.setLog(on); }
  narrow(text) {
    this.filter = text;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const p of this.plots) p.figure.hidden = !words.every((w) => `${p.series.name} ${p.series.own}`.toLowerCase().includes(w));
  }

  resize() {
    for (const p of this.plots) if (p.chart && p.holder.clientWidth > 0) p.chart.setSize({ width: p.holder.clientWidth, height: p.height });
  }

  /* Wheel, shift-drag and click on a plot. */
  listen(chart) {
    const over = chart.over;
    let pressed = null;
    over.addEventListener("wheel", (event) => {
      if (event.ctrlKey === false && Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / 800);
      else if (Math.abs(event.deltaY) > 0) this.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 120) / 500), chart.posToVal(event.offsetX, "x"));
      event.preventDefault();
    }, { passive: false });
    over.addEventListener("mousedown", (event) => {
      pressed = { x: event.clientX, from: this.view.from, to: this.view.to };
      if (!event.shiftKey) return;
      event.stopImmediatePropagation();
      const start = pressed, perPixel = (start.to - start.from) / over.clientWidth;
      const move = (e) => { const by = (start.x - e.clientX) * perPixel; this.show(start.from + by, start.to + by); };
      const up = () => { removeEventListener("mousemove", move); removeEventListener("mouseup", up); };
      addEventListener("mousemove", move);
      addEventListener("mouseup", up);
    }, true);
    over.addEventListener("click", (event) => {
      if (pressed && Math.abs(event.clientX - pressed.x) > 3) return;
      const at = chart.posToVal(event.offsetX, "x"), slack = 6 * (this.view.to - this.view.from) / over.clientWidth;
      const hit = this.incidents().filter((i) => at >= i.onset - slack && at <= (i.end ?? this.extent[1]) + slack);
      hit.sort((a, b) => ((a.end ?? this.extent[1]) - a.onset) - ((b.end ?? this.extent[1]) - b.onset));
      if (hit.length) this.onChoose(hit[0]);
    });
  }
}

function incidentCard(incident, choose, go) {
  const until = incident.end === null ? "" : ` ${T.until} ${incident.end}`;
  const head = el("button", { type: "button", "aria-expanded": "false", onclick: () => choose(incident) },
    el("div", { class: "kind" }, incident.causes.length ? el("span", { class: `badge ${incident.causes[0].priority}` }, incident.causes[0].priority) : null, ` ${incident.what}`),
    el("div", { class: "when" }, el("i", {}, incident.severity_word), ` · ${incident.kind} · ${T.step} ${incident.onset}${until} · ${incident.state}`));
  const moments = incident.timeline.map(([step, , what]) => el("li", {}, el("span", {}, `${T.step} ${step}`), el("span", {}, what)));
  const body = el("div", { class: "body" },
    el("button", { type: "button", class: "go", onclick: () => go(incident) }, T["zoom-to"]),
    el("h3", {}, T.first), el("ol", { class: "moments" }, moments),
    el("h3", {}, T.causes), incident.causes.length ? incident.causes.map(causePart) : el("p", { class: "about" }, T["no-cause"]));
  const card = el("section", { class: `incident ${incident.severity}`, id: `incident-${incident.id}` }, head, body);
  card.incident = incident;
  return card;
}

function causePart(cause) {
  const bar = el("i", {});
  bar.style.width = `${Math.round(100 * cause.score)}%`;
  return el("div", { class: "cause" },
    el("div", {}, el("span", { class: `badge ${cause.priority}` }, cause.priority), " ", el("span", { class: "name" }, cause.name), el("span", { class: "score", title: cause.score }, bar)),
    el("div", { class: "about" }, cause.about),
    el("ul", { class: "evidence" }, cause.evidence.map((e) => el("li", {}, e))),
    cause.advice.length ? el("div", { class: "advice" }, el("ul", {}, cause.advice.map(([sentence, code]) => el("li", {}, sentence, code ? el("code", { class: "code" }, code) : null)))) : null,
    cause.test ? el("div", { class: "test" }, el("b", {}, `${T.test}: `), cause.test) : null);
}

function headPart(run) {
  const [advice, code] = run.action;
  return el("div", {},
    el("div", { class: "head" }, el("div", { class: "path" }, run.path), el("div", { class: "facts" }, run.facts.join(" · "))),
    el("div", { class: `verdict ${run.level}` },
      el("div", { class: "words" },
        el("div", { class: "sentence" }, run.sentence),
        advice ? el("div", {}, `${T.do}: ${advice}`, code ? el("code", { class: "code" }, code) : null) : null,
        run.quick.length ? el("table", { class: "quick", "aria-label": T.quick }, run.quick.map(([p, symptom, causes, treatment]) =>
          el("tr", {}, el("td", {}, el("span", { class: `badge ${p}` }, p)), el("td", {}, symptom), el("td", {}, causes), el("td", {}, `→ ${treatment}`)))) : null),
      el("div", { class: "grade" }, T.grade, el("b", {}, run.grade), run.basis)));
}

function footPart(run) {
  const list = (title, items) => (items.length ? el("section", {}, el("h2", {}, title), el("ul", {}, items.map((i) => el("li", {}, i)))) : null);
  const pairs = run.config.flatMap(([name, value]) => [el("dt", { title: name }, name), el("dd", {}, value)]);
  return el("footer", { class: "foot" },
    list(T["not-checked"], run.not_checked.map(([what, why]) => `${what}: ${why}`)),
    list(T.names, run.names.map(([signal, own]) => `${signal} ← ${own}`)),
    list(T.notes, run.notes),
    list(T["not-named"], run.not_named.length ? [run.not_named.join(", ")] : []),
    pairs.length ? el("section", {}, el("h2", {}, T.config), el("dl", {}, pairs)) : null);
}

class Page {
  constructor() {
    this.root = document.getElementById("page");
    this.theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    this.log = false;
    this.runSelect = el("select", { class: "run", "aria-label": T.run, onchange: () => this.open(Number(this.runSelect.value)) },
      DATA.runs.map((run, i) => el("option", { value: i }, `${run.grade}  ${run.path}`)));
    this.branchSelect = el("select", { "aria-label": T.stretch, onchange: () => this.stretch(this.branchSelect.value) });
    this.search = el("input", { type: "search", placeholder: T.filter, "aria-label": T.filter, oninput: () => this.board.narrow(this.search.value) });
    this.logButton = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggleLog() }, T["log-all"]);
    this.content = el("div", {});
    this.root.append(...[
      el("div", { class: "bar" }, el("span", { class: "brand" }, "Poise"), DATA.runs.length > 1 ? this.runSelect : null, this.branchSelect, el("span", { class: "gap" }), this.search, this.logButton,
        el("button", { type: "button", onclick: () => this.board.reset() }, T.reset), el("button", { type: "button", onclick: () => this.toggleTheme() }, T.theme)),
      DATA.errors.length ? el("section", { class: "errors" }, el("h2", {}, T.errors), el("ul", {}, DATA.errors.map((e) => el("li", {}, e.error.includes(e.path) ? e.error : `${e.path}: ${e.error}`)))) : null,
      this.content, el("p", { class: "help" }, T.help)].filter(Boolean));
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    if (DATA.runs.length) this.open(0);
  }

  open(index) {
    if (this.board) { this.board.close(); this.board.resizer.disconnect(); }
    const run = DATA.runs[index];
    this.board = new Board(run, (incident) => this.choose(incident, true));
    this.branchSelect.hidden = run.branches.length < 2;
    this.branchSelect.replaceChildren(el("option", { value: "" }, `${T.stretch}: ${T.all}`), ...run.branches.map((b, i) => el("option", { value: b }, `${T.stretch} ${i + 1}`)));
    this.cards = run.incidents.map((i) => incidentCard(i, (it) => this.choose(it), (it) => this.board.goTo(it)));
    const side = el("aside", { class: "side" }, el("h2", {}, T.incidents), this.cards.length ? this.cards : el("p", { class: "about" }, T["no-incidents"]));
    this.content.replaceChildren(headPart(run), el("div", { class: "columns" }, this.board.node, side), footPart(run));
    if (this.log) this.board.setLog(true);
    this.board.narrow(this.search.value);
    if (run.incidents.length && run.incidents[0].severity !== "info") this.choose(run.incidents[0]);
  }

  choose(incident, keepOpen) {
    const again = this.board.chosen === incident && !keepOpen;
    this.board.choose(again ? null : incident);
    for (const card of this.cards) {
      const open = card.incident === this.board.chosen;
      card.classList.toggle("open", open);
      card.firstChild.setAttribute("aria-expanded", String(open));
      if (open && keepOpen) card.scrollIntoView({ block: "nearest" });
    }
  }

  stretch(value) {
    this.board.branch = value === "" ? null : Number(value);
    this.board.build();
  }

  step(by) {
    const list = this.board.incidents();
    if (!list.length) return;
    const now = list.indexOf(this.board.chosen);
    const next = list[(now + by + list.length) % list.length] ?? list[0];
    this.choose(next, true);
    this.board.goTo(next);
  }

  toggleLog() {
    this.log = !this.log;
    this.logButton.setAttribute("aria-pressed", String(this.log));
    this.board.setLog(this.log);
  }

  theme(name) { document.documentElement.dataset.theme = name; }
  toggleTheme() {
    this.theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    this.board.restyle();
  }

  print(on) {
    if (!this.board) return;
    if (on) { this.before = document.documentElement.dataset.theme; this.theme("light"); }
    else this.theme(this.before);
    for (const p of this.board.plots) if (!p.figure.hidden && (p.chart || on)) p.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.board) return;
    if (event.key === "Escape") document.activeElement.blur();
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const board = this.board;
    const actions = {
      ArrowLeft: () => board.pan(-0.2), ArrowRight: () => board.pan(0.2), "+": () => board.zoom(0.7), "=": () => board.zoom(0.7), "-": () => board.zoom(1 / 0.7),
      0: () => board.reset(), n: () => this.step(1), p: () => this.step(-1), l: () => this.toggleLog(), "/": () => this.search.focus(), t: () => this.toggleTheme(),
    };
    if (actions[event.key]) { actions[event.key](); event.preventDefault(); }
  }
}

window.poisePage = new Page();
