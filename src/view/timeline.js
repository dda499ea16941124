"use strict";
// Draws the boxes of the page's JSON on a canvas. Names are drawn or set as text, never as markup.
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("canvas"), pen = canvas.getContext("2d");
const told = document.getElementById("told"), ROW = 16, HEAD = 20;
let from = data.from_seconds, to = data.to_seconds, top = 0, drag = null;
document.getElementById("title").textContent = data.run.command || "";
const COUNTER = 40;
// Every lane is a list of rows: marks, spans, calls; and below the threads there is a lane for each counter.
const lanes = data.threads.map(t => ({
    title: (t.name || "thread " + t.tid) + " [pid " + t.pid + "]",
    rows: [...(t.marks.length ? [{kind: "mark", boxes: t.marks.map(m => [m[0], m[0], m[1], m[2], 0, 0])}] : []),
           ...t.spans.map(boxes => ({kind: "span", boxes})), ...t.rows.map(boxes => ({kind: "call", boxes}))]}));
const height = lanes.reduce((sum, t) => sum + HEAD + t.rows.length * ROW, 0) + data.counters.length * (HEAD + COUNTER);
const length = s => s >= 1 ? s.toFixed(3) + " s" : s >= 1e-3 ? (s * 1e3).toFixed(3) + " ms" : (s * 1e6).toFixed(3) + " µs";

// The first box of a row that ends after a moment: boxes are in the order of time.
function first(row, moment) {
    let low = 0, high = row.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (row[middle][1] < moment) low = middle + 1; else high = middle;
    }
    return low;
}

function drawRow(row, y) {
    const scale = canvas.clientWidth / (to - from);
    for (let i = first(row, from); i < row.length && row[i][0] <= to; i++) {
        const [begin, end, id, calls, covered] = row[i], f = data.functions[id];
        const x = Math.max(-1, (begin - from) * scale), right = Math.min(canvas.clientWidth + 1, (end - from) * scale);
        pen.globalAlpha = calls > 1 && end > begin ? 0.35 + 0.65 * covered / (end - begin) : 1;
        pen.fillStyle = "hsl(" + f.hue + ",60%,70%)";
        pen.fillRect(x, y, Math.max(0.5, right - x - 0.3), ROW - 1);
        pen.globalAlpha = 1;
        if (right - x > 30 && calls === 1) {
            pen.fillStyle = "#000";
            pen.fillText(f.name.slice(0, (right - x) / 6.5), x + 3, y + 12);
        }
    }
}

// What the program told of itself: a span is a frame, a mark a line with its name beside it.
function drawTold(row, y) {
    const scale = canvas.clientWidth / (to - from), isMark = row.kind === "mark";
    for (let i = first(row.boxes, from); i < row.boxes.length && row.boxes[i][0] <= to; i++) {
        const [begin, end, name, count] = row.boxes[i];
        const x = Math.max(-1, (begin - from) * scale), right = Math.min(canvas.clientWidth + 1, (end - from) * scale);
        const next = isMark && i + 1 < row.boxes.length ? (row.boxes[i + 1][0] - from) * scale : canvas.clientWidth;
        const room = isMark ? next - x : right - x;
        pen.fillStyle = isMark ? "#a00" : "#e8e8f4";
        pen.fillRect(x, y, isMark ? 2 : Math.max(0.5, right - x), ROW - 1);
        if (!isMark) {
            pen.strokeStyle = "#557";
            pen.strokeRect(x + 0.5, y + 0.5, Math.max(0.5, right - x - 1), ROW - 2);
        }
        if (room > 30) {
            pen.fillStyle = "#000";
            pen.fillText((name + (count > 1 ? " (" + count + ")" : "")).slice(0, room / 6.5), x + 4, y + 12);
        }
    }
}

function drawCounter(counter, y) {
    const scale = canvas.clientWidth / (to - from), values = counter.points.map(p => p[1]);
    const least = values.reduce((a, b) => Math.min(a, b), 0), most = values.reduce((a, b) => Math.max(a, b), 0);
    const at = value => y + HEAD + COUNTER - 2 - (most > least ? (value - least) / (most - least) * (COUNTER - 4) : 0);
    pen.fillStyle = "#444";
    pen.fillText(counter.name + " [pid " + counter.pid + "]  " + least + " to " + most, 4, y + 14);
    pen.strokeStyle = "#06a";
    pen.beginPath();
    counter.points.forEach((p, i) => {
        const x = (p[0] - from) * scale, before = i ? at(counter.points[i - 1][1]) : at(p[1]);
        if (i) pen.lineTo(x, before); else pen.moveTo(x, before);
        pen.lineTo(x, at(p[1]));
        if (i + 1 === counter.points.length) pen.lineTo((data.to_seconds - from) * scale, at(p[1]));
    });
    pen.stroke();
}

function draw() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = "11px sans-serif";
    let y = -top;
    for (const t of lanes) {
        pen.fillStyle = "#444";
        pen.fillText(t.title, 4, y + 14);
        y += HEAD;
        for (const row of t.rows) {
            if (y > -ROW && y < canvas.clientHeight) {
                if (row.kind === "call") drawRow(row.boxes, y); else drawTold(row, y);
            }
            y += ROW;
        }
    }
    for (const counter of data.counters) {
        drawCounter(counter, y);
        y += HEAD + COUNTER;
    }
    document.getElementById("range").textContent = from.toFixed(6) + " s – " + to.toFixed(6) + " s (" + length(to - from) + ")";
}

function boxAt(x, y) {
    let at = HEAD - top;
    const moment = from + x / canvas.clientWidth * (to - from), pixel = (to - from) / canvas.clientWidth;
    for (const t of lanes) {
        const row = Math.floor((y - at) / ROW);
        if (y >= at && row < t.rows.length) {
            const {kind, boxes} = t.rows[row], near = kind === "mark" ? 4 * pixel : pixel;
            const box = boxes[first(boxes, moment - (kind === "mark" ? near : 0))];
            return box && box[0] <= moment + near ? {kind, box} : null;
        }
        at += t.rows.length * ROW + HEAD;
    }
    return null;
}

function describe(kind, box) {
    const at = " at " + box[0].toFixed(6) + " s";
    if (kind === "mark") return box[2] + (box[3] > 1 ? " and others, " + box[3] + " marks" : "") + at;
    if (kind === "span") return box[2] + (box[3] > 1 ? " and others, " + box[3] + " spans" : "") + ": " + length(box[1] - box[0]) + at;
    const f = data.functions[box[2]];
    return f.name + (box[3] > 1 ? " and others, " + box[3] + " calls" : "") + ": " + length(box[1] - box[0]) + at +
        (f.file ? "  " + f.file + ":" + f.line : "") +
        Object.entries(box[6] || {}).map(([what, text]) => "  " + what + ": " + text).join("");
}

function zoom(factor, x) {
    const middle = from + x * (to - from), span = Math.max(1e-7, (to - from) * factor);
    from = Math.max(data.from_seconds, middle - x * span);
    to = Math.min(data.to_seconds, from + span);
    draw();
}

function move(seconds) {
    seconds = Math.max(data.from_seconds - from, Math.min(data.to_seconds - to, seconds));
    from += seconds;
    to += seconds;
    draw();
}

function scroll(pixels) {
    top = Math.max(0, Math.min(height - canvas.clientHeight / 2, top + pixels));
    draw();
}

function all() {
    [from, to, top] = [data.from_seconds, data.to_seconds, 0];
    draw();
}

canvas.addEventListener("wheel", e => {
    e.preventDefault();
    if (e.shiftKey) scroll(e.deltaY || e.deltaX); else zoom(e.deltaY > 0 ? 1.25 : 0.8, e.offsetX / canvas.clientWidth);
}, {passive: false});
canvas.addEventListener("mousedown", e => { drag = [e.clientX, e.clientY]; });
window.addEventListener("mouseup", () => { drag = null; });
canvas.addEventListener("mousemove", e => {
    if (drag) {
        move((drag[0] - e.clientX) / canvas.clientWidth * (to - from));
        scroll(drag[1] - e.clientY);
        drag = [e.clientX, e.clientY];
        return;
    }
    const found = boxAt(e.offsetX, e.offsetY);
    if (!found) { told.textContent = "\u00a0"; return; }
    told.textContent = describe(found.kind, found.box);
});
canvas.addEventListener("dblclick", all);
canvas.addEventListener("keydown", e => {
    const step = (to - from) / 8;
    const keys = {ArrowLeft: () => move(-step), ArrowRight: () => move(step), ArrowUp: () => scroll(-ROW * 3), ArrowDown: () => scroll(ROW * 3),
                  "+": () => zoom(0.7, 0.5), "-": () => zoom(1.4, 0.5), "0": all};
    if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
});
window.addEventListener("resize", draw);
draw();
})();
