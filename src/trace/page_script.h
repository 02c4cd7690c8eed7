// SPDX-License-Identifier: Apache-2.0
// The page around a timeline's data: style, controls and script. `DATA` stands where the data go.
#pragma once

namespace deuce::trace {

inline constexpr char kPageHead[] = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Deuce timeline</title>
<style>
:root{--paper:#fff;--ink:#1d2330;--dim:#5b6475;--line:#d9dde5;--band:#f5f6f9;--tip:#fff;
--qk:#8ab4f8;--sm:#c9a5f2;--pv:#fbb26a;--load:#86cf96;--fix:#f28b82;--sum:#e3cffa;--wait:repeating-linear-gradient(135deg,#f5f6f9 0 3px,#c3c9d4 3px 4px);--hatch:#c3c9d4;--other:#cfd5df;--mark:#4a5263}
@media(prefers-color-scheme:dark){:root{--paper:#14181f;--ink:#e3e7ee;--dim:#9aa4b5;--line:#363d4a;--band:#1a1f28;
--tip:#222936;--wait:repeating-linear-gradient(135deg,#1a1f28 0 3px,#465061 3px 4px);--hatch:#465061;--other:#7d8798;--mark:#b5bdcb}}
html,body{margin:0;height:100%;background:var(--paper);color:var(--ink);font:13px system-ui,"Segoe UI",Helvetica,Arial,sans-serif}
body{display:flex;flex-direction:column}
header{padding:8px 14px;border-bottom:1px solid var(--line);display:flex;gap:14px;flex-wrap:wrap;align-items:center}
h1{font-size:15px;margin:0}label{white-space:nowrap}button{font:inherit;color:inherit;background:var(--band);border:1px solid var(--line);border-radius:4px;padding:2px 9px}
.key{display:inline-block;width:11px;height:11px;margin:0 4px 0 10px;vertical-align:-1px}
#view{flex:1;overflow:auto;position:relative}canvas{display:block}
#tip{position:fixed;display:none;background:var(--tip);border:1px solid var(--line);border-radius:4px;padding:6px 9px;pointer-events:none;
box-shadow:0 2px 8px #0003;white-space:pre;font-size:12px}
footer{padding:5px 14px;border-top:1px solid var(--line);color:var(--dim)}
</style></head><body>
<header><h1>Deuce timeline</h1><span id="runs"></span><label><input type="checkbox" id="arrows" checked> arrows</label>
<label><input type="checkbox" id="all"> all warps and units</label><button id="fit">whole run</button><button id="steady">steady blocks</button><span id="keys"></span></header>
<div id="view"><canvas id="c"></canvas></div><div id="tip"></div>
<footer id="foot"></footer>
<script>
"use strict";
window.onerror = (text) => { document.body.dataset.error = text; };
const DATA = )html";

inline constexpr char kPageTail[] = R"html(;
const LEFT = 150, ROW = 22, GAP = 3, HEAD = 34, AXIS = 30;
const canvas = document.getElementById("c"), pen = canvas.getContext("2d");
const view = document.getElementById("view"), tip = document.getElementById("tip");
const arrowsBox = document.getElementById("arrows"), allBox = document.getElementById("all");
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const KINDS = {qk: "QK", sm: "softmax", pv: "PV", sum: "row sum", load: "TMA", fix: "correction, store", wait: "waiting", other: "other"};
let colors = {}, width = 0, rows = [], from = 0, to = 1, drawn = 0;

// Times on the common axis: each run counts from its own steady block.
const shift = (run) => -run.align;
const x = (t) => LEFT + (t - from) / (to - from) * (width - LEFT - 12);
const timeAt = (px) => from + (px - LEFT) / (width - LEFT - 12) * (to - from);

function layout() {
  rows = [];
  let y = AXIS;
  for (const run of DATA.runs) {
    if (!run.shown) continue;
    rows.push({run, head: true, y});
    y += HEAD;
    for (const track of run.tracks) track.y = -1;
    for (const track of [...run.tracks].sort((a, b) => a.order - b.order)) {
      if (!allBox.checked && !track.main) continue;
      track.y = y;
      rows.push({run, track, y});
      y += ROW + GAP;
    }
    // A warp that is not shown is stood for by the one of its role that is.
    for (const track of run.tracks) track.at = track.y < 0 && track.stand >= 0 ? run.tracks[track.stand].y : track.y;
    y += 8;
  }
  const scale = window.devicePixelRatio || 1;
  width = view.clientWidth;
  const height = Math.max(y + 8, view.clientHeight - 2);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  for (const name of [...Object.keys(KINDS), "paper", "ink", "dim", "line", "band", "mark"]) colors[name] = color(name);
  colors.wait = hatch();
}

/// Waits are pale and hatched.
function hatch() {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const brush = tile.getContext("2d");
  brush.fillStyle = color("band");
  brush.fillRect(0, 0, 6, 6);
  brush.strokeStyle = color("hatch");
  for (const by of [-6, 0, 6]) {
    brush.moveTo(by, 6);
    brush.lineTo(by + 6, 0);
  }
  brush.stroke();
  return pen.createPattern(tile, "repeat");
}

function text(words, px, py, style, align) {
  pen.fillStyle = style;
  pen.textAlign = align || "left";
  pen.fillText(words, px, py);
}

function drawAxis(height) {
  const span = to - from;
  let step = 1;
  for (let i = 0; span / step > 12; ++i) step *= [2, 2.5, 2][i % 3];
  pen.font = "11px system-ui,sans-serif";
  pen.strokeStyle = colors.line;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const px = Math.round(x(t)) + 0.5;
    pen.beginPath();
    pen.moveTo(px, 20);
    pen.lineTo(px, height);
    pen.stroke();
    text(String(Math.round(t)), px, 14, colors.dim, "center");
  }
  text("cycles", LEFT - 10, 14, colors.dim, "right");
}

function drawRange(track, range, offset) {
  const [event, begin, end, block] = range, kind = DATA.events[event].kind;
  const left = Math.max(LEFT, x(begin + offset)), right = Math.min(width - 12, x(end + offset));
  if (right <= left - 0.5) return;
  const inset = range.depth * 3;
  pen.fillStyle = colors[kind];
  pen.fillRect(left, track.y + inset, Math.max(right - left, 1), ROW - 2 * inset);
  ++drawn;
  // Words, or the block alone; an issued PV keeps clear of the wait for the tail of P on it.
  const e = DATA.events[event], fits = (words) => right - left > pen.measureText(words).width + 4;
  let words = e.short ? e.short + " " + block : kind === "wait" ? e.edge : e.name;
  if (e.short && !fits(words)) words = String(block);
  if (fits(words) && e.name !== "mma_issue_PV")
    text(words, (left + right) / 2, track.y + 15, kind === "wait" || kind === "other" ? colors.ink : "#10141d", "center");
}

function drawSamples(track, offset) {
  const most = Math.max(1, ...track.samples.map((s) => s[1]));
  pen.fillStyle = colors.load;
  track.samples.forEach(([at, value], i) => {
    const next = i + 1 < track.samples.length ? track.samples[i + 1][0] : at;
    const left = Math.max(LEFT, x(at + offset)), right = Math.min(width - 12, x(next + offset));
    if (right > left) pen.fillRect(left, track.y + ROW - ROW * value / most, right - left, ROW * value / most);
  });
}

function drawArrows(run, offset) {
  pen.lineWidth = 1;
  for (const [source, begin, target, end] of run.arrows) {
    const a = run.tracks[source], b = run.tracks[target];
    const left = x(begin + offset), right = x(end + offset);
    if (a.at < 0 || b.y < 0 || a === b || right < LEFT || left > width || left < LEFT) continue;
    const y1 = a.at + ROW / 2, y2 = b.y + ROW / 2, bend = Math.max(8, (right - left) / 2);
    pen.strokeStyle = colors.mark;
    pen.beginPath();
    pen.moveTo(left, y1);
    pen.bezierCurveTo(left + bend, y1, right - bend, y2, right, y2);
    pen.moveTo(right - 5, y2 - 3);
    pen.lineTo(right, y2);
    pen.lineTo(right - 5, y2 + 3);
    pen.stroke();
  }
}

function draw() {
  layout();
  drawn = 0;
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, width, canvas.height);
  drawAxis(canvas.height);
  for (const row of rows) {
    pen.font = "600 13px system-ui,sans-serif";
    if (row.head) {
      text(row.run.label, 12, row.y + 20, colors.ink);
      const behind = 12 + pen.measureText(row.run.label).width + 14;
      pen.font = "12px system-ui,sans-serif";
      text(row.run.caption, Math.max(LEFT, behind), row.y + 20, colors.dim);
      continue;
    }
    pen.font = "12px system-ui,sans-serif";
    text(row.track.name, LEFT - 10, row.y + 15, colors.ink, "right");
    pen.fillStyle = colors.band;
    pen.fillRect(LEFT, row.y, width - LEFT - 12, ROW);
    pen.font = "11px system-ui,sans-serif";
    if (row.track.samples.length) drawSamples(row.track, shift(row.run));
    for (const range of row.track.ranges) drawRange(row.track, range, shift(row.run));
  }
  if (arrowsBox.checked && (to - from) < 40000)
    for (const run of DATA.runs) if (run.shown) drawArrows(run, shift(run));
  document.body.dataset.drawn = drawn;
}

/// The innermost range under a point, or null.
function find(px, py) {
  const row = rows.find((r) => r.track && py >= r.y && py < r.y + ROW);
  if (!row || px < LEFT) return null;
  const t = timeAt(px) - shift(row.run), slack = (to - from) / (width - LEFT);
  let best = null;
  for (const range of row.track.ranges) if (range[1] - slack <= t && t <= range[2] + slack) best = range;
  return best && {row, range: best};
}

function describe({row, range}) {
  const [event, begin, end, block, slot, phase] = range, e = DATA.events[event], ns = 1e9 / row.run.clock;
  const lines = [e.name + (e.argument ? " (" + e.argument + ")" : ""), "block " + block + ", slot " + slot + ", parity " + (phase & 1)];
  if (e.edge) lines.push("edge " + e.edge + ", phase " + phase);
  lines.push("begin " + begin.toFixed(0) + ", length " + (end - begin).toFixed(0) + " cycles = " + ((end - begin) * ns).toFixed(1) + " ns");
  return lines.join("\n") + "\n" + row.track.name + ", " + row.run.label + " (" + row.run.origin + ")";
}

function hover(event) {
  const box = canvas.getBoundingClientRect(), hit = find(event.clientX - box.left, event.clientY - box.top);
  tip.style.display = hit ? "block" : "none";
  if (!hit) return;
  tip.textContent = describe(hit);
  tip.style.left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8) + "px";
}

function zoom(at, factor) {
  const span = Math.max(20, (to - from) * factor), share = (at - from) / (to - from);
  from = at - share * span;
  to = from + span;
  draw();
}

function wholeRun() {
  from = Math.min(...DATA.runs.map((run) => shift(run)));
  to = Math.max(...DATA.runs.map((run) => run.length + shift(run)));
  draw();
}
function steadyBlocks() {
  const span = Math.max(...DATA.runs.map((run) => run.window));
  from = -0.01 * span;
  to = 1.02 * span;
  draw();
}

function nest(track) {
  const open = [];
  for (const range of track.ranges) {
    while (open.length && open[open.length - 1][2] <= range[1]) open.pop();
    range.depth = Math.min(open.length, 3);
    open.push(range);
  }
}

function start() {
  for (const run of DATA.runs) {
    run.shown = true;
    run.tracks.forEach(nest);
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.onchange = () => { run.shown = box.checked; draw(); };
    label.append(box, " " + run.label);
    document.getElementById("runs").append(label, " ");
  }
  const keys = document.getElementById("keys");
  for (const [kind, words] of Object.entries(KINDS)) {
    const key = document.createElement("span");
    key.className = "key";
    key.style.background = "var(--" + kind + ")";
    keys.append(key, words);
  }
  document.getElementById("foot").textContent = DATA.note;
  document.getElementById("fit").onclick = wholeRun;
  document.getElementById("steady").onclick = steadyBlocks;
  arrowsBox.onchange = allBox.onchange = window.onresize = draw;
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && event.shiftKey) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(timeAt(event.clientX - box.left), event.deltaY > 0 ? 1.25 : 0.8);
  }, {passive: false});
  let drag = null;
  canvas.onpointerdown = (event) => { drag = event.clientX; canvas.setPointerCapture(event.pointerId); };
  canvas.onpointerup = () => { drag = null; };
  canvas.onpointermove = (event) => {
    if (drag === null) { hover(event); return; }
    const by = (drag - event.clientX) / (width - LEFT - 12) * (to - from);
    drag = event.clientX;
    from += by;
    to += by;
    draw();
  };
  canvas.onpointerleave = () => { tip.style.display = "none"; };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  steadyBlocks();
  document.body.dataset.ready = "yes";
}
start();
</script></body></html>
)html";

}  // namespace deuce::trace
