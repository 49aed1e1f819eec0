"use strict";
/* One plot per signal over a shared view of the steps: zoom, pan and cursor go together; each is drawn when it scrolls into view. */

const HEIGHT = { main: 210, other: 132 };
const AXIS_WIDTH = 66;
const WIDEST_BAND = 4; // pixels that even a one-step incident takes

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/* Arrays as the page stores them: `r:first:stride:count`, `o:first:base64 uint32 offsets`, `d:` float64, `f:` float32. */
function decode(text) {
  const kind = text[0];
  if (kind === "r") {
    const [first, stride, count] = text.slice(2).split(":").map(Number);
    return Float64Array.from({ length: count }, (_, i) => first + i * stride);
  }
  const cut = kind === "o" ? text.indexOf(":", 2) : 1;
  const bytes = Uint8Array.from(atob(text.slice(cut + 1)), (c) => c.charCodeAt(0));
  if (kind === "f") return new Float32Array(bytes.buffer);
  if (kind === "d") return new Float64Array(bytes.buffer);
  const first = Number(text.slice(2, cut));
  return Float64Array.from(new Uint32Array(bytes.buffer), (offset) => first + offset);
}

function short(value) {
  if (value === undefined || value === null) return "";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Inf" : "-Inf";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(Number(value.toPrecision(5)));
}

/* The stretches of a series as lines over one rising array of steps. A line's raw values keep NaN and Inf. */
function linesOf(series, arrays, branch) {
  const parts = series.stretches.filter((s) => branch === null || s.branch === branch);
  const loaded = parts.map((s) => ({ x: arrays(s.x), ys: s.y.map(arrays), branch: s.branch }));
  if (loaded.length === 1) {
    const { x, ys, branch: own } = loaded[0], lines = ys.map((y, i) => ({ y, branch: own, rank: i }));
    const { smooth } = parts[0];
    if (smooth) lines.push({ y: spread(arrays(smooth[0]), arrays(smooth[1]), x.length), branch: own, rank: 0, smooth: true });
    return { x, lines };
  }
  const all = [];
  loaded.forEach((part, p) => part.x.forEach((step, row) => all.push([step, p, row])));
  all.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  const lines = [];
  loaded.forEach((part, p) => part.ys.forEach((y, i) => {
    lines.push({ y: all.map(([, owner, row]) => (owner === p ? y[row] : undefined)), branch: part.branch, rank: i });
  }));
  return { x: Float64Array.from(all, (a) => a[0]), lines };
}

function spread(rows, values, length) {
  const y = new Array(length).fill(undefined);
  rows.forEach((row, i) => { y[row] = values[i]; });
  return y;
}

class Plot {
  constructor(board, series) {
    Object.assign(this, { board, series, chart: null, log: null, shown: false });
    this.figure = document.createElement("figure");
    this.caption = document.createElement("figcaption");
    this.holder = document.createElement("div");
    this.holder.className = "canvas";
    this.height = series.main ? HEIGHT.main : HEIGHT.other;
    this.holder.style.height = `${this.height}px`;
    this.figure.append(this.caption, this.holder);
    this.figure.plot = this;
    this.figure.dataset.signal = series.name;
    this.describe();
  }

  load() {
    if (this.data) return;
    this.data = linesOf(this.series, this.board.arrays, this.board.branch);
    this.positive = true;
    this.notPositive = 0;
    let low = Infinity, high = -Infinity, count = 0;
    for (const { y, smooth } of this.data.lines) if (!smooth) for (const v of y) if (Number.isFinite(v)) {
      if (v > 0) { low = Math.min(low, v); high = Math.max(high, v); } else this.notPositive++;
      count++;
    }
    this.positive = count > this.notPositive;
    if (this.log === null) this.log = this.series.log && this.notPositive === 0 && high / low > 10;
  }

  describe() {
    const { series } = this;
    const make = (tag, text, className) => { const e = document.createElement(tag); e.textContent = text; if (className) e.className = className; return e; };
    const name = make("b", series.name);
    name.title = series.meaning || series.name;
    this.caption.replaceChildren(name);
    const own = [series.own !== series.name ? series.own : "", series.unit].filter(Boolean).join(", ");
    if (own) this.caption.append(make("span", own, "own"));
    const stretches = series.stretches.filter((s) => this.board.branch === null || s.branch === this.board.branch);
    const total = (key) => stretches.reduce((sum, s) => sum + s[key], 0);
    const bad = [[total("nan"), "NaN"], [total("inf"), "Inf"]].filter(([n]) => n).map(([n, word]) => `${n} ${word}`).join(", ");
    if (bad) this.caption.append(make("span", `✕ ${bad}`, "bad"));
    this.note = make("span", "", "note");
    this.caption.append(this.note);
    if (total("kept") < total("rows")) this.note.title = this.board.texts.thinned.replace("{kept}", total("kept")).replace("{rows}", total("rows"));
    this.at = make("span", "", "at");
    this.button = make("button", this.board.texts.log);
    this.button.type = "button";
    this.button.setAttribute("aria-label", `${series.name}: ${this.board.texts["log-all"]}`);
    this.button.addEventListener("click", () => this.setLog(!this.log));
    this.caption.append(this.at, this.button);
  }

  setLog(on) {
    this.log = on;
    if (this.chart) this.draw();
  }

  draw() {
    this.load();
    this.erase();
    const { board, data } = this;
    this.button.setAttribute("aria-pressed", String(this.log && this.positive));
    const log = this.log && this.positive;
    this.note.textContent = log && this.notPositive ? `${this.notPositive} ${board.texts["not-positive"]}` : "";
    const visible = (v) => (v === undefined ? undefined : Number.isFinite(v) && (!log || v > 0) ? v : null);
    const columns = data.lines.map(({ y }) => Array.from(y, visible));
    const options = {
      width: Math.max(this.holder.clientWidth, 120), height: this.height, legend: { show: false }, padding: [8, 16, 0, 0],
      cursor: { sync: { key: board.sync.key, scales: ["x", null] }, y: false, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => board.reset() }, points: { size: 6 } },
      select: { show: true },
      scales: { x: { time: false, range: () => [board.view.from, board.view.to] }, y: { distr: log ? 3 : 1, range: (u, low, high) => rangeOf(low, high, log) } },
      axes: this.axes(log),
      series: [{}, ...data.lines.map((line) => this.line(line))],
      hooks: { drawClear: [(u) => this.drawBands(u)], draw: [(u) => this.drawGaps(u)], setCursor: [(u) => this.readOff(u)], setSelect: [(u) => this.zoomed(u)] },
    };
    this.chart = new uPlot(options, [data.x, ...columns], this.holder);
    board.listen(this.chart);
  }

  axes(log) {
    const grid = { stroke: colour("grid"), width: 1 };
    const shared = { stroke: colour("soft"), grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const steps = { ...shared, size: 24, space: 70, values: (u, ticks) => ticks.map((t) => (Number.isInteger(t) ? t.toLocaleString("en-US").replaceAll(",", "\u2009") : "")) };
    const values = { ...shared, size: AXIS_WIDTH, space: log ? 14 : 30, values: (u, ticks) => ticks.map((t) => (t === null ? "" : short(t))) };
    if (log) values.filter = (u, ticks) => decades(ticks, u.scales.y.min, u.scales.y.max);
    if (log) values.grid = { ...grid, filter: values.filter };
    return [steps, values];
  }

  line({ branch, rank, smooth }) {
    const hues = this.board.branches.length > 1 && this.board.branch === null ? this.board.branches.indexOf(branch) : rank;
    const hue = colour(`c${hues % 8}`);
    if (smooth) return { stroke: hue, width: 2, spanGaps: true, points: { show: false } };
    return {
      stroke: this.data.lines.some((l) => l.smooth) ? `${hue}66` : hue, width: 1.4, spanGaps: false,
      points: { size: 4, filter: (u, index, show, gaps) => (show || !gaps || !gaps.length ? null : lonely(u.data[index])) },
    };
  }

  erase() {
    if (this.chart) this.chart.destroy();
    this.chart = null;
  }

  drawBands(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const incident of this.board.incidents()) {
      const from = u.valToPos(incident.onset, "x", true);
      const to = u.valToPos(incident.end ?? this.board.extent[1], "x", true);
      const chosen = incident === this.board.chosen;
      ctx.fillStyle = colour(incident.severity);
      ctx.globalAlpha = chosen ? 0.13 : 0.06;
      ctx.fillRect(from, bbox.top, Math.max(to - from, WIDEST_BAND), bbox.height);
      ctx.globalAlpha = chosen ? 1 : 0.55;
      ctx.fillRect(from, bbox.top, chosen ? 2.5 : 1.5, bbox.height);
    }
    ctx.globalAlpha = 0.7;
    ctx.setLineDash([4, 4]);
    for (const event of this.board.events()) {
      const x = u.valToPos(event.step, "x", true);
      ctx.strokeStyle = colour(event.kind === "restart" ? "soft" : "critical");
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  /* Values that are not finite: a shaded gap with a cross at its foot. */
  drawGaps(u) {
    const { ctx, bbox } = u;
    const { x, lines } = this.data;
    ctx.save();
    ctx.fillStyle = ctx.strokeStyle = colour("critical");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    const foot = bbox.top + bbox.height - 7 * devicePixelRatio, arm = 3 * devicePixelRatio;
    for (const { y, smooth } of lines) for (const [first, last] of smooth ? [] : stretchesOf(y)) {
      if (x[last] < this.board.view.from || x[first] > this.board.view.to) continue;
      const left = Math.max(u.valToPos(x[first], "x", true), bbox.left), right = Math.min(u.valToPos(x[last], "x", true), bbox.left + bbox.width);
      ctx.globalAlpha = 0.22;
      ctx.fillRect(left - devicePixelRatio, bbox.top, Math.max(right - left, 0) + 2 * devicePixelRatio, bbox.height);
      ctx.globalAlpha = 1;
      const middle = (left + right) / 2;
      ctx.beginPath();
      ctx.moveTo(middle - arm, foot - arm); ctx.lineTo(middle + arm, foot + arm);
      ctx.moveTo(middle + arm, foot - arm); ctx.lineTo(middle - arm, foot + arm);
      ctx.stroke();
    }
    ctx.restore();
  }

  readOff(u) {
    const row = u.cursor.idx;
    if (row === null || row === undefined || u.cursor.left < 0) { this.at.replaceChildren(); return; }
    const values = this.data.lines.filter((l) => !l.smooth).map(({ y }) => y[row]).filter((v) => v !== undefined);
    const strong = document.createElement("b");
    strong.textContent = values.slice(0, 4).map(short).join("  ");
    this.at.replaceChildren(`${this.board.texts.step} ${this.data.x[row]}  `, strong);
  }

  zoomed(u) {
    if (u.select.width > 3) {
      const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
      u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      this.board.show(from, to);
    }
  }
}

/* The ticks of a log axis worth a label: powers of ten where there are three or more, else 1, 2 and 5. */
function decades(ticks, low, high) {
  const wide = Math.log10(high / low);
  const step = Math.max(1, Math.ceil(wide / 5));
  return ticks.map((t) => {
    const power = Math.floor(Math.log10(t) + 1e-9), lead = Math.round(t / 10 ** power);
    if (wide > 2.2) return lead === 1 && power % step === 0 ? t : null;
    return wide < 0.5 || lead === 1 || lead === 2 || lead === 5 ? t : null;
  });
}

function rangeOf(low, high, log) {
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) return log ? [1, 10] : [0, 1];
  if (log) return low === high ? [low / 2, high * 2] : [low / (high / low) ** 0.06, high * (high / low) ** 0.06];
  if (low === high) return low === 0 ? [-1, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
  const margin = (high - low) * 0.06;
  return [low - margin, high + margin];
}

/* Points with a gap on either side, which no line shows. */
function lonely(y) {
  const found = [];
  for (let i = 0; i < y.length; i++) if (y[i] != null && y[i - 1] === null && (y[i + 1] === null || i + 1 === y.length)) found.push(i);
  return found.length ? found : null;
}

/* [first row, last row] of each run of values that are not finite. */
function stretchesOf(y) {
  if (y.gaps) return y.gaps;
  const found = [];
  let first = -1, last = -1;
  for (let i = 0; i < y.length; i++) {
    if (y[i] === undefined) continue;
    if (Number.isFinite(y[i])) { if (first >= 0) found.push([first, last]); first = -1; } else { if (first < 0) first = i; last = i; }
  }
  if (first >= 0) found.push([first, last]);
  y.gaps = found;
  return found;
}
