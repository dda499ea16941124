// The flame graph's page: draws the blocks of the embedded data on a canvas. Plain ES2020, no
// library, no network. Names are foreign text: they reach the page as textContent or through
// fillText, never as markup.
"use strict";
(() => {
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
    const labels = data.labels.map(([name, kind, module, file, line, shade]) => ({
        name, kind, line, shade, module: data.modules[module][0], hue: data.modules[module][1], file: data.files[file],
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
        ctx.fillStyle = l.kind === SPECIAL || l.kind === FOLDED ? "rgb(0 0 0 / 55%)" : "rgb(0 0 0 / 85%)";
        ctx.fillText(name, x, y);
        const more = l.kind === CODE ? l.module : l.kind === ROOT || l.kind === THREAD ? weight(widthOf === "before" ? before[i] : total[i]) : "";
        if (!more || name.endsWith("…")) return;
        const used = measure(name) + 8;
        const rest = room - used > 22 ? fit(isolated(more), room - used) : "";
        if (!rest) return;
        ctx.fillStyle = "rgb(0 0 0 / 45%)";
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

    // --- zoom ---

    const calm = matchMedia("(prefers-reduced-motion: reduce)");

    function goTo(a, b) {
        const least = 1e-9; // below, numbers run out of digits
        if (b - a < least) b = a + least;
        a = Math.max(0, Math.min(a, 1 - least));
        b = Math.min(1, b);
        $("reset").disabled = a === 0 && b === 1;
        if (calm.matches) {
            from = a;
            to = b;
            redraw();
            return;
        }
        const start = performance.now(), a0 = from, b0 = to;
        const mine = (target = { a, b });
        const step = (now) => {
            if (target !== mine) return;
            const t = Math.min(1, (now - start) / 160), e = 1 - (1 - t) ** 3;
            from = t === 1 ? a : a0 + (a - a0) * e;
            to = t === 1 ? b : b0 + (b - b0) * e;
            draw();
            if (t < 1) requestAnimationFrame(step);
            else target = null;
        };
        requestAnimationFrame(step);
    }

    const goal = () => target || { a: from, b: to };

    function zoom(i) {
        history.push({ ...goal(), zoomed });
        zoomed = i;
        goTo(left[i], left[i] + wide[i]);
        reveal(i);
    }

    function reset() {
        history.length = 0;
        zoomed = -1;
        goTo(0, 1);
    }

    function back() {
        const last = history.pop();
        if (!last) return;
        zoomed = last.zoomed;
        goTo(last.a, last.b);
    }

    function reveal(i) {
        const y = yOf(i), top = isTime ? AXIS : 0;
        if (y < chart.scrollTop + top) chart.scrollTop = y - top - ROW;
        else if (y + 2 * ROW > chart.scrollTop + height) chart.scrollTop = y + 2 * ROW - height;
    }

    // --- what is under the pointer ---

    function blockAt(clientX, clientY) {
        const box = canvas.getBoundingClientRect();
        const x = from + ((clientX - box.left) / width) * (to - from);
        const inCanvas = clientY - box.top;
        if (inCanvas < 0 || inCanvas > height || (isTime && inCanvas < AXIS)) return -1;
        const y = inCanvas + chart.scrollTop;
        for (const row of rows) {
            if (y < row.y || y >= row.y + ROW) continue;
            // a block of less than a point is taken for a point wide
            const slack = ((to - from) / width) * 0.5;
            let low = 0, high = row.blocks.length;
            while (low < high) {
                const middle = (low + high) >> 1, i = row.blocks[middle];
                if (left[i] + wide[i] + slack > x) high = middle;
                else low = middle + 1;
            }
            const i = row.blocks[low];
            return i !== undefined && left[i] - slack <= x ? i : -1;
        }
        return -1;
    }

    function element(name, text, className) {
        const e = document.createElement(name);
        e.textContent = text;
        if (className) e.className = className;
        return e;
    }

    // [what, how much, its share, on how many samples] of a block
    function numbersOf(i) {
        const rowsOf = [["total", weight(total[i]), percent(total[i], data.whole), number(samples[i])]];
        if (!folded.has(i) && !data.bottomUp) rowsOf.push(["self", weight(self[i]), percent(self[i], data.whole), number(selfSamples[i])]);
        if (zoomed >= 0 && zoomed !== i) rowsOf[0].push(percent(total[i], total[zoomed]) + " of the zoom");
        if (before) {
            rowsOf.push(["before", weight(before[i]), percent(before[i], data.wholeBefore), number(beforeSamples[i])]);
            const points = 100 * change(i);
            rowsOf.push(["change", "", (points > 0 ? "+" : points < 0 ? "−" : "±") + Math.abs(points).toFixed(2) + " points", ""]);
        }
        if (isTime) rowsOf.push(["from", seconds((data.from + data.start[i]) * 1e-9), "for " + seconds(data.width[i] * 1e-9), ""]);
        return rowsOf;
    }

    function showTip(i, clientX, clientY) {
        const tip = $("tip");
        tip.hidden = i < 0;
        if (i < 0) return;
        const l = labels[label[i]];
        tip.replaceChildren(element("b", nameOf(i)));
        if (l.module) tip.append(element("span", "  " + l.module, "path"));
        if (l.file) tip.append(element("div", place(l), "path"));
        if (l.kind === FOLDED) tip.append(element("div", "blocks too small for this picture, and what they call", "path"));
        const table = document.createElement("table");
        for (const cells of numbersOf(i)) {
            const tr = table.insertRow();
            cells.forEach((cell, k) => tr.append(element("td", k === 3 && cell ? cell + (cell === "1" ? " sample" : " samples") : cell)));
        }
        tip.append(table);
        const box = tip.getBoundingClientRect();
        const x = Math.min(clientX + 14, innerWidth - box.width - 8);
        const y = clientY + 18 + box.height > innerHeight ? clientY - box.height - 12 : clientY + 18;
        tip.style.left = Math.max(4, x) + "px";
        tip.style.top = Math.max(4, y) + "px";
    }

    function showDetails(i) {
        const details = $("details");
        details.replaceChildren();
        if (i < 0) {
            details.append(element("span", "Click a block to zoom, / to search, ? for help", "path"));
            return;
        }
        const l = labels[label[i]];
        details.append(element("b", nameOf(i)));
        if (l.file) details.append(element("span", "  " + place(l), "path"));
        const texts = numbersOf(i).map(([what, much, part]) => what + " " + [much, part].filter(Boolean).join(", "));
        details.append(element("span", "   " + texts.join("  ·  ") + "  ·  " + number(samples[i]) + (samples[i] === 1 ? " sample" : " samples")));
    }

    function select(i) {
        selected = i;
        showDetails(i);
        if (i >= 0) {
            reveal(i);
            const g = goal();
            if (left[i] + wide[i] <= g.a || left[i] >= g.b) goTo(left[i], left[i] + wide[i]);
        }
        redraw();
    }

    // --- search ---

    function expression(text) {
        const flags = text === text.toLowerCase() ? "iu" : "u"; // a capital letter means itself
        try {
            $("search").classList.remove("wrong");
            return new RegExp(text, flags);
        } catch (error) {
            $("search").classList.add("wrong");
            return new RegExp(text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), flags);
        }
    }

    // How much the found blocks cover, what lies under another one counted once.
    function covered() {
        let sum = 0;
        const inside = new Uint8Array(count);
        found = [];
        for (let i = 0; i < count; i++) {
            const hit = matches[label[i]];
            if (hit) found.push(i);
            const up = parent[i];
            inside[i] = (up >= 0 && inside[up]) || hit ? 1 : 0;
            if (hit && !(up >= 0 && inside[up])) sum += widthOf === "before" ? before[i] : total[i];
        }
        return sum;
    }

    function search(text) {
        matches = null;
        found = [];
        $("matched").textContent = "";
        $("search").classList.remove("wrong");
        if (text) {
            const re = expression(text);
            matches = labels.map((l) => (l.kind === FOLDED || l.kind === ROOT ? 0 : re.test(l.name) || re.test(l.module) || re.test(place(l)) ? 1 : 0));
            const sum = covered();
            $("matched").textContent = percent(sum, widthOf === "before" ? data.wholeBefore : data.whole) + " matched, " + number(found.length) + (found.length === 1 ? " block" : " blocks");
        }
        redraw();
    }

    function nextMatch(step) {
        if (!found.length) return;
        const at = found.indexOf(selected);
        select(found[at < 0 ? (step > 0 ? 0 : found.length - 1) : (at + step + found.length) % found.length]);
    }

    // --- keyboard ---

    function children(i) {
        const list = [];
        for (let k = i + 1; k < count && lane[k] === lane[i] && depth[k] > depth[i]; k++) if (parent[k] === i) list.push(k);
        return list;
    }

    function neighbour(i, step) {
        const blocks = rows[firstRow[lane[i]] + depth[i]].blocks;
        let at = blocks.indexOf(i) + step;
        while (at >= 0 && at < blocks.length && wide[blocks[at]] === 0) at += step;
        return blocks[at] === undefined ? i : blocks[at];
    }

    function move(key) {
        if (selected < 0) return select(zoomed >= 0 ? zoomed : 0);
        if (key === "ArrowUp" && parent[selected] >= 0) return select(parent[selected]);
        if (key === "ArrowLeft") return select(neighbour(selected, -1));
        if (key === "ArrowRight") return select(neighbour(selected, 1));
        if (key === "ArrowDown") {
            const under = children(selected);
            if (under.length) select(under.reduce((best, k) => (wide[k] > wide[best] ? k : best)));
        }
        return undefined;
    }

    function escape() {
        if (matches) {
            $("search").value = "";
            search("");
        } else if (from !== 0 || to !== 1 || target) reset();
        else select(-1);
        chart.focus();
    }

    const keys = {
        ArrowUp: move, ArrowDown: move, ArrowLeft: move, ArrowRight: move,
        Enter: () => selected >= 0 && zoom(selected),
        Escape: escape,
        Backspace: back,
        "/": () => $("search").focus(),
        "?": () => $("help").showModal(),
        n: () => nextMatch(1),
        N: () => nextMatch(-1),
        r: reset,
        c: () => {
            const select_ = $("colour");
            select_.selectedIndex = (select_.selectedIndex + 1) % select_.options.length;
            setColour(select_.value);
        },
    };

    addEventListener("keydown", (event) => {
        const inSearch = event.target === $("search");
        if ((event.ctrlKey || event.metaKey) && event.key === "f" && !inSearch) {
            event.preventDefault();
            $("search").focus();
            $("search").select();
            return;
        }
        if ($("help").open || event.ctrlKey || event.metaKey || event.altKey) return;
        if (inSearch) {
            if (event.key === "Escape") escape();
            else if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
            return;
        }
        if (event.target.closest && event.target.closest("select, button") && event.key !== "Escape") return;
        const act = Object.prototype.hasOwnProperty.call(keys, event.key) ? keys[event.key] : null;
        if (!act) return;
        event.preventDefault();
        act(event.key);
    });

    // --- pointer ---

    let drag = null;

    canvas.addEventListener("pointerdown", (event) => {
        drag = { x: event.clientX, a: from, b: to, moved: false };
    });
    addEventListener("pointerup", () => setTimeout(() => (drag = null)));
    canvas.addEventListener("pointermove", (event) => {
        if (drag && (event.buttons & 1) && Math.abs(event.clientX - drag.x) > 4) drag.moved = true;
        if (drag && drag.moved) {
            const span = drag.b - drag.a;
            const a = Math.max(0, Math.min(1 - span, drag.a - ((event.clientX - drag.x) / width) * span));
            from = a;
            to = a + span;
            showTip(-1);
            redraw();
            return;
        }
        const i = blockAt(event.clientX, event.clientY);
        canvas.style.cursor = i < 0 ? "default" : "pointer";
        showTip(i, event.clientX, event.clientY);
        if (i !== hovered) {
            hovered = i;
            showDetails(i < 0 ? selected : i);
            redraw();
        }
    });
    canvas.addEventListener("pointerleave", () => {
        hovered = -1;
        showTip(-1);
        showDetails(selected);
        redraw();
    });
    canvas.addEventListener("click", (event) => {
        if (drag && drag.moved) return;
        const i = blockAt(event.clientX, event.clientY);
        if (i < 0) return;
        selected = i;
        showDetails(i);
        zoom(i);
        showTip(-1);
    });
    canvas.addEventListener("wheel", (event) => {
        if (event.ctrlKey || event.metaKey) {
            event.preventDefault();
            const at = from + (event.offsetX / width) * (to - from);
            const factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01);
            target = null;
            from = Math.max(0, at - (at - from) * factor);
            to = Math.min(1, at + (to - at) * factor);
            if (to - from < 1e-9) to = from + 1e-9;
            $("reset").disabled = from === 0 && to === 1;
            redraw();
        } else if (event.deltaX || event.shiftKey) {
            event.preventDefault();
            const span = to - from, by = ((event.deltaX || event.deltaY) / width) * span;
            from = Math.max(0, Math.min(1 - span, from + by));
            to = from + span;
            redraw();
        }
    }, { passive: false });
    chart.addEventListener("scroll", redraw);

    // --- the page around it ---

    function ramp(colourAt, fromText, toText) {
        const span = document.createElement("span");
        const strip = document.createElement("canvas");
        strip.width = 120;
        strip.height = 11;
        const c = strip.getContext("2d");
        for (let x = 0; x < 120; x++) {
            c.fillStyle = colourAt(x / 119);
            c.fillRect(x, 0, 1, 11);
        }
        span.append(element("span", fromText), strip, element("span", toText));
        return span;
    }

    function showLegend() {
        const legend = $("legend");
        legend.replaceChildren();
        if (colour === "heat") legend.append(ramp(heatColour, "own share 0", percent(hottest, data.whole)));
        if (colour === "change") {
            const most = (100 * largestChange).toFixed(1);
            legend.append(ramp((t) => changeColour(Math.sign(t - 0.5) * Math.sqrt(Math.abs(2 * t - 1))), "−" + most, "+" + most + " points"));
        }
        if (colour !== "module") return;
        const sums = new Map();
        for (let i = 0; i < count; i++) {
            const l = labels[label[i]];
            if (l.kind === CODE && l.module) sums.set(l.module, (sums.get(l.module) || 0) + self[i]);
        }
        const heaviest = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 5);
        for (const [name, sum] of heaviest) {
            const button = document.createElement("button");
            const dot = document.createElement("i");
            const l = labels.find((one) => one.module === name);
            dot.style.background = moduleColour(l.hue, 3);
            button.append(dot, name.length > 28 ? "…" + name.slice(-27) : name);
            button.title = name + ": own share " + percent(sum, data.whole);
            button.addEventListener("click", () => {
                $("search").value = "^" + name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") + "$";
                search($("search").value);
            });
            legend.append(button);
        }
    }

    function setColour(name) {
        colour = name;
        mix();
        showLegend();
        redraw();
    }

    function fillPage() {
        document.title = data.title + " – flame graph";
        for (const fact of data.facts) $("facts").append(element("span", fact));
        for (const note of data.notes) $("notes").append(element("span", note));
        const names = before ? ["change", "module", "heat"] : ["module", "heat"];
        for (const name of names) $("colour").append(element("option", name));
        $("colour").value = colour;
        $("colour").addEventListener("change", () => setColour($("colour").value));
        $("widths").hidden = !before;
        $("width").addEventListener("change", () => {
            widthOf = $("width").value;
            lay();
            search($("search").value);
        });
        $("tools").addEventListener("submit", (event) => event.preventDefault());
        $("search").addEventListener("input", () => search($("search").value));
        $("reset").addEventListener("click", reset);
        $("ask").addEventListener("click", () => $("help").showModal());
    }

    darkMedia.addEventListener("change", () => {
        isDark = darkMedia.matches;
        readTheme();
        setColour(colour);
    });
    addEventListener("beforeprint", () => {
        printing = true;
        readTheme();
        theme = { ...theme, page: "#ffffff", text: "#000000", faint: "#555555", line: "#dddddd" };
        mix();
        width = 1000;
        height = Math.min(fullHeight, 14000); // what a canvas can hold
        sizeCanvas(2);
        draw();
    });
    addEventListener("afterprint", () => {
        printing = false;
        readTheme();
        mix();
        size();
    });

    fillPage();
    readTheme();
    setColour(colour);
    showDetails(-1);
    new ResizeObserver(size).observe(chart);
    size();

    // For tests and for the curious: what is where.
    window.flame = {
        count, whole: data.whole, height: fullHeight,
        state: () => ({ from: goal().a, to: goal().b, moving: target !== null, selected, hovered, zoomed, matched: found.length, colour }),
        find: (name) => { for (let i = 0; i < count; i++) if (labels[label[i]].name === name) return i; return -1; },
        name: nameOf,
        box: (i) => {
            const box = canvas.getBoundingClientRect();
            const x = Math.max(0, ((left[i] - from) / (to - from)) * width);
            const right = Math.min(width, ((left[i] + wide[i] - from) / (to - from)) * width);
            return { x: box.left + x, y: box.top + yOf(i) - chart.scrollTop, width: right - x, height: ROW };
        },
        numbers: (i) => ({ total: total[i], self: self[i], samples: samples[i], selfSamples: selfSamples[i], before: before ? before[i] : null, left: left[i], wide: wide[i], depth: depth[i] }),
    };
})();
