// Marks what belongs together: the lines of a step while it is pointed at, has the focus or is pinned, and the lines, the
// instructions and the steps of a line while that is pointed at. What belongs to what is written in the page: see view.rs.
(() => {
  "use strict";
  const words = (it, key) => (it.dataset[key] || "").split(" ").filter(Boolean);
  const lines = [...document.querySelectorAll(".l, .m")];
  const parts = new Map(lines.map((it) => [it, words(it, "n")]));
  const steps = new Map();
  for (const it of document.querySelectorAll("section.step")) {
    steps.set(it.id.slice("step-".length), new Set(words(it, "n")));
  }
  const links = [...document.querySelectorAll("[data-step]")];
  const pins = [...document.querySelectorAll("button.pin")];
  const bar = document.getElementById("pinned");
  let pinned = null;

  const mark = (isLine, isStep) => {
    lines.forEach((it) => it.classList.toggle("on", isLine(it)));
    links.forEach((it) => it.classList.toggle("on", isStep(it.dataset.step)));
  };
  const markStep = (step) => {
    const own = steps.get(step) || new Set();
    mark((it) => parts.get(it).some((name) => own.has(name)), (it) => it === step);
  };
  // A line of the program goes with all that comes from its part; one of the code with what was printed from its statement.
  const markLine = (line) => {
    const own = parts.get(line), statement = line.dataset.o;
    const isOwn = (name) => own.includes(name);
    mark(
      (it) => it === line || (statement && it.dataset.o ? it.dataset.o === statement : parts.get(it).some(isOwn)),
      (step) => own.some((name) => (steps.get(step) || new Set()).has(name)),
    );
  };
  const rest = () => (pinned === null ? mark(() => false, () => false) : markStep(pinned));

  // Brings the first marked line of each view that shows none into sight, without moving the page.
  const reveal = () => {
    for (const view of document.querySelectorAll(".lines, .groups")) {
      const marked = [...view.querySelectorAll(".on")], top = view.scrollTop;
      const isSeen = (it) => it.offsetTop >= top && it.offsetTop + 16 <= top + view.clientHeight;
      if (marked.length && !marked.some(isSeen)) view.scrollTop = marked[0].offsetTop - view.clientHeight / 3;
    }
  };
  const pin = (step) => {
    pinned = steps.has(step) ? step : null;
    pins.forEach((it) => it.setAttribute("aria-pressed", String(it.dataset.step === pinned)));
    rest();
    if (bar) bar.hidden = pinned === null;
    if (pinned === null || !bar) return;
    reveal();
    const section = document.getElementById("step-" + pinned);
    const back = document.createElement("a");
    back.href = "#step-" + pinned;
    back.textContent = "Step " + section.querySelector("h2").textContent;
    const own = [...section.querySelector(".own").childNodes].slice(1).map((it) => it.cloneNode(true));
    const end = document.createElement("button");
    end.type = "button";
    end.textContent = "Unmark (Esc)";
    end.addEventListener("click", () => unpin());
    bar.replaceChildren(back, " ", ...own, " ", end);
  };
  const address = (hash) => history.replaceState(null, "", location.pathname + location.search + hash);
  const unpin = () => {
    if (pinned !== null && location.hash.startsWith("#step-")) address("");
    pin(null);
  };
  const asked = () => /^#step-\d+$/.test(location.hash) && pin(location.hash.slice("#step-".length));

  const at = (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const found = target && target.closest(".l, .m, [data-step]");
    if (!found) rest();
    else if (found.dataset.step) {
      markStep(found.dataset.step);
      reveal();
    } else markLine(found);
  };
  document.addEventListener("pointerover", at);
  document.addEventListener("focusin", at);
  document.addEventListener("focusout", rest);
  document.documentElement.addEventListener("pointerleave", rest);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") unpin();
  });
  for (const it of pins) {
    it.hidden = false;
    it.addEventListener("click", () => {
      if (it.dataset.step === pinned) return unpin();
      address("#step-" + it.dataset.step);
      pin(it.dataset.step);
    });
  }
  window.addEventListener("hashchange", asked);
  asked();
})();
