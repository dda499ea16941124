// Zoom and search in the picture. Everything is taken from the elements; names are only ever set as
// text. Without a script the picture is the same, but stands still.
"use strict";
(() => {
    const svg = document.documentElement;
    const margin = +svg.dataset.margin, charWidth = +svg.dataset.char;
    const whole = svg.viewBox.baseVal.width - 2 * margin;
    const $ = (id) => document.getElementById(id);
    const blocks = Array.from($("blocks").children, (g) => {
        const rect = g.querySelector("rect"), title = g.querySelector("title").textContent.split("\n");
        return {
            g, rect, name: title[0], module: (title.find((line) => line.startsWith("module ")) || "").slice(7), all: title.join("\n"), folded: g.classList.contains("f"),
            x: +rect.getAttribute("x") - margin, w: +rect.getAttribute("width"), y: +rect.getAttribute("y"),
        };
    });
    const total = blocks.reduce((sum, b) => sum + (b.g.classList.contains("t") ? b.w : 0), 0) || 1;
    let from = 0, to = whole;

    function label(b, x, width) {
        let text = b.g.querySelector("text");
        const fits = Math.floor((width - 6) / charWidth);
        const chars = Array.from(b.name);
        if (fits < 3) {
            if (text) text.remove();
            return;
        }
        if (!text) {
            text = document.createElementNS("http://www.w3.org/2000/svg", "text");
            text.setAttribute("y", b.y + 12.5);
            b.g.append(text);
        }
        text.setAttribute("x", x + 3);
        text.textContent = chars.length <= fits ? b.name : chars.slice(0, fits - 1).join("") + "…";
        if (!b.module || chars.length + 1 + b.module.length >= fits) return;
        const more = document.createElementNS("http://www.w3.org/2000/svg", "tspan");
        more.setAttribute("class", "m");
        more.setAttribute("dx", 7);
        more.textContent = b.module;
        text.append(more);
    }

    function show(a, z, row) {
        from = a;
        to = z;
        const scale = whole / (to - from);
        for (const b of blocks) {
            const start = Math.max(b.x, from), end = Math.min(b.x + b.w, to);
            const seen = end - start > 1e-6;
            b.g.style.display = seen ? "" : "none";
            if (!seen) continue;
            const x = margin + (start - from) * scale, width = (end - start) * scale;
            b.rect.setAttribute("x", x);
            b.rect.setAttribute("width", width);
            b.g.classList.toggle("above", b.y < row);
            label(b, x, width);
        }
        $("reset").style.visibility = a === 0 && z === whole ? "hidden" : "visible";
    }

    function search(text) {
        let re = null;
        const flags = text && text === text.toLowerCase() ? "i" : "";
        try {
            re = text ? new RegExp(text, flags) : null;
        } catch (error) {
            re = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), flags);
        }
        let sum = 0, number = 0;
        const ends = []; // of the found blocks that are open, to count what is inside once
        for (const b of blocks) {
            const found = re !== null && !b.folded && re.test(b.all.split("\ntotal ")[0]);
            b.g.classList.toggle("found", found);
            while (ends.length && (b.y <= ends[ends.length - 1].y || b.x >= ends[ends.length - 1].end - 1e-6)) ends.pop();
            if (!found) continue;
            number++;
            if (!ends.length) sum += b.w;
            ends.push({ y: b.y, end: b.x + b.w });
        }
        $("matched").textContent = re ? ((100 * sum) / total).toFixed(1) + " % matched, " + number + (number === 1 ? " block" : " blocks") : " ";
    }

    function ask() {
        const text = prompt("Search names, modules and files (regular expression):", "");
        if (text !== null) search(text);
    }

    $("blocks").addEventListener("click", (event) => {
        const g = event.target.closest(".b");
        const b = blocks.find((one) => one.g === g);
        if (b && b.w > 0) show(b.x, b.x + b.w, b.y);
    });
    $("reset").addEventListener("click", () => show(0, whole, 0));
    $("search").addEventListener("click", ask);
    $("search").style.visibility = "visible";
    addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            search("");
            show(0, whole, 0);
        } else if (event.key === "/" || ((event.ctrlKey || event.metaKey) && event.key === "f")) {
            event.preventDefault();
            ask();
        }
    });
    window.flame = { search, show, blocks, view: () => [from / whole, to / whole] };
})();
