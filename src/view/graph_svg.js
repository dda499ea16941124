// Callers and callees of what the pointer is on, and a search. Everything is taken from the elements;
// names are only ever set as text. Without a script the picture is the same, but stands still.
"use strict";
(() => {
    const $ = (id) => document.getElementById(id);
    const boxes = Array.from($("boxes").children, (g) => ({ g, id: +g.dataset.id, all: g.querySelector("title").textContent.split("\ntotal ")[0] }));
    const arrows = Array.from($("arrows").children, (g) => ({ g, from: +g.dataset.from, to: +g.dataset.to }));
    let held = null;

    function show(id) {
        const near = new Set([id]);
        for (const a of arrows) {
            const touches = id !== null && (a.from === id || a.to === id);
            if (touches) near.add(a.from).add(a.to);
            a.g.classList.toggle("dim", id !== null && !touches);
        }
        for (const b of boxes) b.g.classList.toggle("dim", id !== null && !near.has(b.id));
    }

    function search(text) {
        let re = null;
        const flags = text && text === text.toLowerCase() ? "i" : "";
        try {
            re = text ? new RegExp(text, flags) : null;
        } catch (error) {
            re = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), flags);
        }
        const found = boxes.filter((b) => {
            const matches = re !== null && re.test(b.all);
            b.g.classList.toggle("found", matches);
            return matches;
        });
        if (found.length) found[0].g.scrollIntoView({ block: "center", inline: "center" });
        $("search").textContent = re ? found.length + " found" : "search";
        return found.length;
    }

    function ask() {
        const text = prompt("Search names, modules and files (regular expression):", "");
        if (text !== null) search(text);
    }

    const idAt = (event) => {
        const g = event.target.closest(".n");
        return g ? +g.dataset.id : null;
    };
    $("boxes").addEventListener("mouseover", (event) => held === null && show(idAt(event)));
    $("boxes").addEventListener("mouseout", () => held === null && show(null));
    addEventListener("click", (event) => {
        if (event.target.id === "search") return;
        const id = idAt(event);
        held = id === held ? null : id;
        show(held);
    });
    $("search").addEventListener("click", ask);
    $("search").style.visibility = "visible";
    addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            held = null;
            search("");
            show(null);
        } else if (event.key === "/" || ((event.ctrlKey || event.metaKey) && event.key === "f")) {
            event.preventDefault();
            ask();
        }
    });
    window.graph = { search, show, boxes, arrows };
})();
