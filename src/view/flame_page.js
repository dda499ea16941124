// The flame graph's page, third part: zoom, pointer, search, keyboard, and the page around it.
"use strict";
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
        cells.forEach((cell, k) => tr.append(element("td", k === 3 && cell ? cell + " " + data.noun[cell === "1" ? 0 : 1] : cell)));
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
    details.append(element("span", "   " + texts.join("  ·  ") + "  ·  " + number(samples[i]) + " " + data.noun[samples[i] === 1 ? 0 : 1]));
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
