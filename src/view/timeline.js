"use strict";
// Draws the boxes of the page's JSON on a canvas. Names are drawn or set as text, never as markup.
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("canvas"), pen = canvas.getContext("2d");
const told = document.getElementById("told"), ROW = 16, HEAD = 20;
let from = data.from_seconds, to = data.to_seconds, top = 0, drag = null;
document.getElementById("title").textContent = data.run.command || "";
const height = data.threads.reduce((sum, t) => sum + HEAD + t.rows.length * ROW, 0);
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

function draw() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = "11px sans-serif";
    let y = -top;
    for (const t of data.threads) {
        pen.fillStyle = "#444";
        pen.fillText((t.name || "thread " + t.tid) + " [pid " + t.pid + "]", 4, y + 14);
        y += HEAD;
        for (const row of t.rows) {
            if (y > -ROW && y < canvas.clientHeight) drawRow(row, y);
            y += ROW;
        }
    }
    document.getElementById("range").textContent = from.toFixed(6) + " s – " + to.toFixed(6) + " s (" + length(to - from) + ")";
}

function boxAt(x, y) {
    let at = HEAD - top;
    for (const t of data.threads) {
        const row = Math.floor((y - at) / ROW), moment = from + x / canvas.clientWidth * (to - from);
        if (y >= at && row < t.rows.length) {
            const box = t.rows[row][first(t.rows[row], moment)];
            return box && box[0] <= moment + (to - from) / canvas.clientWidth ? box : null;
        }
        at += t.rows.length * ROW + HEAD;
    }
    return null;
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
    const box = boxAt(e.offsetX, e.offsetY);
    if (!box) { told.textContent = "\u00a0"; return; }
    const f = data.functions[box[2]];
    told.textContent = f.name + (box[3] > 1 ? " and others, " + box[3] + " calls" : "") + ": " + length(box[1] - box[0]) +
        " at " + box[0].toFixed(6) + " s" + (f.file ? "  " + f.file + ":" + f.line : "");
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
