// The flame graph's page, second part: drawing what is seen on the canvas.
"use strict";
// --- what is seen ---

const chart = $("chart"), canvas = $("canvas"), scroll = $("scroll");
const ctx = canvas.getContext("2d");
let width = 0, height = 0;
let from = 0, to = 1; // the part of the whole that is shown
let target = null; // where an animation leads
const history = [];
let selected = -1, hovered = -1, zoomed = -1;
let matches = null; // for each label: 1 if it is found; null without a search
let found = []; // blocks that are found
const measured = new Map();
let asked = false;

function measure(text) {
    let w = measured.get(text);
    if (w === undefined) {
        w = ctx.measureText(text).width;
        if (measured.size > 50000) measured.clear();
        measured.set(text, w);
    }
    return w;
}

// The longest beginning that fits, with … at its end; "" where nothing sensible does.
function fit(text, room) {
    if (measure(text) <= room) return text;
    let low = 0, high = Math.min(text.length, Math.ceil(room / 3));
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (ctx.measureText(text.slice(0, middle) + "…").width <= room) low = middle;
        else high = middle - 1;
    }
    if (low && text.charCodeAt(low - 1) >> 10 === 0x36) low--; // not half a character
    return low < 2 ? "" : text.slice(0, low) + "…";
}

function style(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

let theme = {};
function readTheme() {
    theme = { page: style("--page"), text: style("--text"), faint: style("--faint"), line: style("--line"), accent: style("--accent") };
}

function drawText(i, x, y, room) {
    const l = labels[label[i]];
    const whole = nameOf(i);
    const name = fit(isolated(whole), room);
    if (!name) return;
    const faded = matches && !matches[label[i]];
    const ink = faded ? theme.text : "#000000";
    const strength = faded ? 0.5 : 1;
    ctx.globalAlpha = strength * (l.kind === SPECIAL || l.kind === FOLDED ? 0.55 : 0.85);
    ctx.fillStyle = ink;
    ctx.fillText(name, x, y);
    const more = l.kind === CODE ? l.module : l.kind === ROOT || l.kind === THREAD ? weight(widthOf === "before" ? before[i] : total[i]) : "";
    if (!more || name.endsWith("…")) return;
    const used = measure(name) + 8;
    const rest = room - used > 22 ? fit(isolated(more), room - used) : "";
    if (!rest) return;
    ctx.globalAlpha = strength * 0.5;
    ctx.fillText(rest, x + used, y);
}

function drawBlock(i, x, right, y) {
    const w = right - x;
    const isFound = matches && matches[label[i]];
    ctx.globalAlpha = matches && !isFound ? 0.32 : 1;
    ctx.fillStyle = isFound ? (isDark ? "#c4b5fd" : "#b794f6") : colourOf(i);
    const drawn = w > 3 ? w - 1 : Math.max(w, 0.5);
    ctx.fillRect(x, y, drawn, ROW - 1);
    if (labels[label[i]].kind === FOLDED && w > 6) hatch(x, y, drawn);
    if (i === hovered && w > 1) {
        ctx.fillStyle = isDark ? "rgb(255 255 255 / 22%)" : "rgb(0 0 0 / 10%)";
        ctx.fillRect(x, y, drawn, ROW - 1);
    }
    if (w > 18) drawText(i, x + 5, y + ROW / 2, w - 11);
    ctx.globalAlpha = 1;
    if (i === selected) {
        ctx.strokeStyle = theme.text;
        ctx.lineWidth = 2;
        ctx.strokeRect(x + 1, y + 1, Math.max(drawn - 2, 1), ROW - 3);
    }
}

function hatch(x, y, w) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, w, ROW - 1);
    ctx.clip();
    ctx.strokeStyle = "rgb(0 0 0 / 8%)";
    ctx.lineWidth = 2;
    ctx.beginPath();
    for (let at = x - ROW; at < x + w; at += 7) {
        ctx.moveTo(at, y + ROW);
        ctx.lineTo(at + ROW, y);
    }
    ctx.stroke();
    ctx.restore();
}

// The first block of a row that reaches past the left edge.
function firstSeen(blocks) {
    let low = 0, high = blocks.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (left[blocks[middle]] + wide[blocks[middle]] > from) high = middle;
        else low = middle + 1;
    }
    return low;
}

function drawRow(row, y) {
    const scale = width / (to - from);
    let drawnTo = -1;
    for (let k = firstSeen(row.blocks); k < row.blocks.length; k++) {
        const i = row.blocks[k];
        if (left[i] >= to) break;
        if (wide[i] === 0) continue;
        const x = Math.max(0, (left[i] - from) * scale);
        const right = Math.min(width, (left[i] + wide[i] - from) * scale);
        if (right - x < 0.5 && x < drawnTo + 0.5) continue;
        drawBlock(i, x, right, y);
        drawnTo = right;
    }
}

function niceStep(span, most) {
    const raw = span / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((k) => k * power >= raw);
}

function drawAxis(top) {
    const span = (data.span || 1) * 1e-9, start = data.from * 1e-9;
    const a = start + from * span, b = start + to * span;
    const step = niceStep(b - a, Math.max(2, width / 110));
    ctx.fillStyle = theme.page;
    ctx.fillRect(0, 0, width, AXIS);
    ctx.fillStyle = theme.faint;
    ctx.strokeStyle = theme.line;
    ctx.lineWidth = 1;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let t = Math.ceil(a / step) * step; t <= b; t += step) {
        const x = Math.round(((t - a) / (b - a)) * width) + 0.5;
        ctx.beginPath();
        ctx.moveTo(x, 14);
        ctx.lineTo(x, top);
        ctx.stroke();
        const text = t.toFixed(Math.min(digits, 9)) + " s";
        if (x + measure(text) + 6 < width) ctx.fillText(text, x + 4, 9);
    }
}

function drawHeads(offset) {
    for (let k = 0; k < data.lanes.length; k++) {
        const y = laneTop[k] - HEAD - offset;
        if (y + HEAD < 0 || y > height) continue;
        const [name, , laneTotal] = data.lanes[k];
        ctx.fillStyle = theme.text;
        ctx.font = "600 " + FONT;
        const shown = isolated(name);
        ctx.fillText(shown, 2, y + HEAD / 2 + 1);
        const used = ctx.measureText(shown).width;
        ctx.font = FONT;
        ctx.fillStyle = theme.faint;
        ctx.fillText(weight(laneTotal), used + 12, y + HEAD / 2 + 1);
    }
}

function draw() {
    asked = false;
    const offset = printing ? 0 : chart.scrollTop;
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    ctx.direction = "ltr";
    ctx.fillStyle = theme.page;
    ctx.fillRect(0, 0, width, height);
    if (isTime) drawAxis(height);
    if (isTime) drawHeads(offset);
    for (const row of rows) {
        const y = row.y - offset;
        if (y + ROW > (isTime ? AXIS : 0) && y < height) drawRow(row, y);
    }
    if (isTime && offset) drawAxis(AXIS);
}

function redraw() {
    if (!asked) {
        asked = true;
        requestAnimationFrame(draw);
    }
}

function size() {
    const box = chart.getBoundingClientRect();
    width = Math.max(50, chart.clientWidth);
    height = Math.max(ROW, Math.min(box.height, Math.max(fullHeight, box.height)));
    sizeCanvas(devicePixelRatio || 1);
    scroll.style.height = Math.max(fullHeight, height) + "px";
    redraw();
}

function sizeCanvas(ratio) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
}
