// The flame graph's page, first part: the embedded data as columns of blocks, their places, numbers,
// texts and colours. The three parts are joined into one script (tools/embed.py) and share its scope.
// Plain ES2020, no library, no network. Names are foreign text: they reach the page as textContent
// or through fillText, never as markup.
"use strict";
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
$("data").remove();

const ROW = 20; // height of a block and the gap under it
const HEAD = 24; // height of a thread's heading
const AXIS = 22; // height of the time axis
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, Inter, "Noto Sans", sans-serif';
const CODE = 0, SPECIAL = 1, THREAD = 2, ROOT = 3, FOLDED = 4; // kinds of labels, as flame_kind

const isTime = data.kind === "time";
const count = data.label.length;
const labels = data.labels.map(([name, kind, module, file, line, hue, shade]) => ({
    name, kind, line, hue, shade, module: data.modules[module], file: data.files[file],
}));
const folded = new Map(data.folded);

// --- blocks: columns, callers before what they call ---

const depth = Int32Array.from(data.depth);
const label = Int32Array.from(data.label);
const lane = isTime ? Int32Array.from(data.lane) : new Int32Array(count);
const parent = new Int32Array(count).fill(-1);
const self = Float64Array.from(data.self);
const selfSamples = Float64Array.from(data.samples);
const total = isTime ? Float64Array.from(data.total) : Float64Array.from(data.self);
const samples = isTime ? Float64Array.from(data.totalSamples) : Float64Array.from(data.samples);
const before = data.diff ? Float64Array.from(data.before) : null;
const beforeSamples = data.diff ? Float64Array.from(data.beforeSamples) : null;
const left = new Float64Array(count); // place and width, as parts of the whole
const wide = new Float64Array(count);
let widthOf = "after";

function findParents() {
    const open = [];
    let current = 0;
    for (let i = 0; i < count; i++) {
        if (lane[i] !== current) {
            open.length = 0;
            current = lane[i];
        }
        // along time a caller may have been left out: the nearest one above is taken
        for (let d = depth[i] - 1; d >= 0 && parent[i] < 0; d--) {
            const up = open[d];
            if (up !== undefined && (!isTime || data.start[up] + data.width[up] > data.start[i])) parent[i] = up;
        }
        open[depth[i]] = i;
        open.length = depth[i] + 1;
    }
}

function addUp() {
    for (let i = count - 1; i > 0; i--) {
        const up = parent[i];
        if (up < 0) continue;
        total[up] += total[i];
        samples[up] += samples[i];
        if (before) {
            before[up] += before[i];
            beforeSamples[up] += beforeSamples[i];
        }
    }
}

// Places from the order and the totals; along time from the clock.
function lay() {
    const by = widthOf === "before" ? before : total;
    const whole = isTime ? data.span || 1 : by[0] || 1;
    const edge = new Float64Array(count);
    for (let i = 0; i < count; i++) {
        if (isTime) {
            left[i] = data.start[i] / whole;
            wide[i] = data.width[i] / whole;
            continue;
        }
        wide[i] = by[i] / whole;
        left[i] = i ? edge[parent[i]] : 0;
        if (i) edge[parent[i]] += wide[i];
        edge[i] = left[i];
    }
}

findParents();
if (!isTime) addUp();
lay();

// Rows from top to bottom: for each its y and its blocks from left to right.
const laneTop = [];
const rows = [];
let fullHeight = isTime ? AXIS : 0;
for (const [, deepest] of data.lanes) {
    if (isTime) fullHeight += HEAD;
    laneTop.push(fullHeight);
    for (let d = 0; d < deepest; d++) rows.push({ y: fullHeight + d * ROW, blocks: [] });
    fullHeight += deepest * ROW + (isTime ? 8 : 0);
}
const firstRow = [];
data.lanes.reduce((at, [, deepest], i) => ((firstRow[i] = at), at + deepest), 0);
for (let i = 0; i < count; i++) rows[firstRow[lane[i]] + depth[i]].blocks.push(i);
const yOf = (i) => laneTop[lane[i]] + depth[i] * ROW;

// --- numbers and texts ---

const three = (v) => v.toFixed(Math.abs(v) < 9.995 ? 2 : Math.abs(v) < 99.95 ? 1 : 0);
const number = (v) => Math.round(v).toLocaleString("en-US");

function scaled(v, units, base) {
    let i = 0;
    while (i + 1 < units.length && Math.abs(v) >= base * 0.9995) {
        v /= base;
        i++;
    }
    return three(v) + " " + units[i];
}

function seconds(s) {
    if (s === 0) return "0 s";
    if (Math.abs(s) >= 3599.5) {
        const minutes = Math.round(s / 60);
        return Math.floor(minutes / 60) + " h " + String(minutes % 60).padStart(2, "0") + " min";
    }
    return Math.abs(s) >= 0.9995 ? three(s) + " s" : scaled(s * 1e9, ["ns", "µs", "ms"], 1000);
}

function weight(w) {
    const v = w * data.scale;
    if (data.unit === "seconds") return seconds(v);
    if (data.unit === "bytes") return scaled(v, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
    return number(v);
}

function percent(part, whole) {
    const p = whole ? (100 * part) / whole : 0;
    return p.toFixed(p === 0 || p >= 1 ? 1 : p >= 0.1 ? 2 : 3) + " %";
}

// Letters that run from right to left do not turn what stands beside them.
const isolated = (text) => (/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(text) ? "\u2068" + text + "\u2069" : text);

function nameOf(i) {
    const l = labels[label[i]];
    return l.kind === FOLDED ? "… (" + number(folded.get(i) || 0) + " more)" : l.name;
}

const place = (l) => (l.file ? l.file + (l.line ? ":" + l.line : "") : "");

// --- colours: OKLCH as in flame.c ---

function oklch(L, C, hue) {
    const a = C * Math.cos((hue * Math.PI) / 180), b = C * Math.sin((hue * Math.PI) / 180);
    const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const channel = (v) => {
        const c = v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055;
        return Math.round(255 * Math.min(1, Math.max(0, c)));
    };
    return "rgb(" + channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) + " " +
        channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) + " " +
        channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s) + ")";
}

const darkMedia = matchMedia("(prefers-color-scheme: dark)");
let isDark = darkMedia.matches;
const tone = (L) => (isDark && !printing ? L - 0.1 : L);
let printing = false;

const share = (i) => (data.whole ? total[i] / data.whole : 0);
const shareBefore = (i) => (before && data.wholeBefore ? before[i] / data.wholeBefore : 0);
const change = (i) => share(i) - shareBefore(i);
let hottest = 0, largestChange = 0;
for (let i = 0; i < count; i++) {
    const kind = labels[label[i]].kind;
    if (kind !== FOLDED) hottest = Math.max(hottest, self[i]);
    if (before && i) largestChange = Math.max(largestChange, Math.abs(change(i)));
}

const moduleColour = (hue, shade) => oklch(tone(0.835 + 0.014 * (shade - 3)), 0.088, hue + 4 * (shade - 3));
const heatColour = (t) => oklch(tone(0.94 - 0.28 * t), 0.05 + 0.14 * t, 95 - 67 * t);
const changeColour = (t) => oklch(tone(0.93 - 0.25 * Math.abs(t)), 0.01 + 0.15 * Math.abs(t), t < 0 ? 250 : 27);

let colour = data.colour;
let palette = []; // by label, for colours that do not depend on the block

function mix() {
    palette = labels.map((l) => {
        if (l.kind === ROOT) return oklch(tone(0.91), 0.008, 260);
        if (l.kind === THREAD) return oklch(tone(0.87), 0.025, 260);
        if (l.kind === FOLDED) return oklch(tone(0.9), 0, 0);
        if (l.kind === SPECIAL) return oklch(tone(0.82), 0, 0);
        return colour === "module" ? moduleColour(l.hue, l.shade) : null;
    });
}

function colourOf(i) {
    const fixed = palette[label[i]];
    if (fixed) return fixed;
    if (colour === "heat") return heatColour(hottest ? Math.sqrt(self[i] / hottest) : 0);
    const c = change(i);
    return changeColour(largestChange ? Math.sign(c) * Math.sqrt(Math.abs(c) / largestChange) : 0);
}
