// Search in the pages. The index is a script that is loaded when the field gets the focus.
(() => {
    "use strict";
    const root = document.documentElement.dataset.root;
    const field = document.getElementById("search");
    const list = document.getElementById("results");
    const found = document.getElementById("found");
    const MAX_RESULTS = 20;
    const EXCERPT = 120;
    let sections = null;
    let isLoading = false;

    function load() {
        if (isLoading) return;
        isLoading = true;
        window.codewrightSearch = (rows) => {
            sections = rows.map(([address, title, heading, text]) => ({
                address, title, heading, text,
                lower: [heading || title, title, text].map((value) => value.toLowerCase()),
            }));
            show();
        };
        const script = document.createElement("script");
        script.src = root + "search-index.js";
        script.addEventListener("error", () => { found.textContent = "The index of the search is missing."; });
        document.head.append(script);
    }

    // Every word must occur. Words of headings count more, and whole words more than parts.
    function score(section, words) {
        let sum = 0;
        for (const word of words) {
            let best = 0;
            [40, 20, 4].forEach((weight, place) => {
                const text = section.lower[place];
                const at = text.indexOf(word);
                if (at < 0) return;
                const startsWord = at === 0 || /[^\p{L}\p{N}]/u.test(text[at - 1]);
                best = Math.max(best, startsWord ? weight * 2 : weight);
                if (text === word) best += weight;
            });
            if (best === 0) return 0;
            sum += best;
        }
        return sum;
    }

    function excerpt(section, words) {
        const at = Math.max(0, section.lower[2].indexOf(words[0]));
        const start = Math.max(0, section.text.lastIndexOf(" ", Math.max(0, at - EXCERPT / 3)));
        const last = section.text.indexOf(" ", start + EXCERPT);
        const text = (last < 0 ? section.text.slice(start) : section.text.slice(start, last)).trim();
        return (start > 0 ? "… " : "") + text + (last < 0 ? "" : " …");
    }

    function show() {
        const words = field.value.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 12);
        list.replaceChildren();
        list.hidden = true;
        found.textContent = "";
        if (!sections || words.length === 0) return;
        const scored = sections.map((section) => [score(section, words), section]);
        const hits = scored.filter(([points]) => points > 0).sort((a, b) => b[0] - a[0]);
        for (const [, section] of hits.slice(0, MAX_RESULTS)) {
            const link = document.createElement("a");
            link.href = root + section.address;
            const name = document.createElement("strong");
            name.textContent = section.heading ? section.title + " › " + section.heading : section.title;
            const text = document.createElement("span");
            text.textContent = excerpt(section, words);
            link.append(name, text);
            const item = document.createElement("li");
            item.append(link);
            list.append(item);
        }
        list.hidden = hits.length === 0;
        found.textContent = hits.length === 1 ? "1 result" : hits.length + " results";
    }

    field.addEventListener("focus", load);
    field.addEventListener("input", () => { load(); show(); });
    field.addEventListener("keydown", (event) => {
        const first = list.querySelector("a");
        if (event.key === "Enter" && first) first.click();
        if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); }
    });
    list.addEventListener("keydown", (event) => {
        const links = [...list.querySelectorAll("a")];
        const at = links.indexOf(document.activeElement);
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (!step || at < 0) return;
        event.preventDefault();
        (links[at + step] || field).focus();
    });
    document.addEventListener("keydown", (event) => {
        const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
        if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
            event.preventDefault();
            field.focus();
        }
        if (event.key === "Escape") { field.value = ""; show(); }
    });
})();
