// Shows what the studio sends: a part of the page for each event. Whatever is HTML in an event was escaped where it was made.
(() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  const make = (tag, attributes = {}, ...children) => {
    const it = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) it.setAttribute(name, value);
    it.append(...children);
    return it;
  };

  // The tabs. What is said of the panels comes with the events; steps and changes are the page's own.
  const TABS = [
    ["step", "Step"],
    ["changes", "Last change"],
    ["program", "Program"],
    ["kernel", "Kernel"],
    ["source", "Source"],
    ["timeline", "Timeline"],
    ["resources", "Resources"],
    ["virtual-gpu", "Virtual GPU"],
  ];
  const NONE = "This comes once the script is legal.";
  // Where the lines of a step are marked.
  const MARKED = ["program", "kernel", "source"];

  let steps = [];
  let chosen = null;
  let asked = 0;

  // Tabs and their panels.
  const tabs = new Map();
  for (const [id, title] of TABS) {
    const dot = make("span", { class: "dot", role: "img", "aria-label": "changed by the last save", hidden: "" }, "●");
    const tab = make("button", { type: "button", role: "tab", id: "tab-" + id, "aria-controls": "panel-" + id }, title, dot);
    const notice = make("p", { class: "notice", hidden: "" });
    const body = make("div", { class: "body" }, make("p", { class: "quiet" }, NONE));
    const extra = make("div", { class: "extra" });
    const panel = make("section", { role: "tabpanel", id: "panel-" + id, "aria-labelledby": tab.id, tabindex: "0" }, notice, extra, body);
    tabs.set(id, { tab, dot, panel, notice, body, extra });
    tab.addEventListener("click", () => show(id));
    at("tabs").append(tab);
    at("panels").append(panel);
  }
  const shown = () => (tabs.has(location.hash.slice(1)) ? location.hash.slice(1) : "step");
  const show = (id, focus = false) => {
    history.replaceState(null, "", "#" + id);
    for (const [other, { tab, panel }] of tabs) {
      tab.setAttribute("aria-selected", String(other === id));
      tab.tabIndex = other === id ? 0 : -1;
      panel.hidden = other !== id;
    }
    const { tab } = tabs.get(id);
    if (focus) tab.focus();
    const row = at("tabs");
    if (tab.offsetLeft < row.scrollLeft || tab.offsetLeft + tab.offsetWidth > row.scrollLeft + row.clientWidth) {
      row.scrollLeft = tab.offsetLeft - 24;
    }
    reveal();
  };
  at("tabs").addEventListener("keydown", (event) => {
    const all = [...tabs.keys()], now = all.indexOf(shown());
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(all[(to + all.length) % all.length], true);
  });
  window.addEventListener("hashchange", () => show(shown()));

  // The lines of the chosen step, in the panels that have lines of parts.
  const mark = () => {
    const step = steps[chosen - 1], own = new Set(step ? step.parts.split(" ").filter(Boolean) : []);
    for (const id of MARKED) {
      for (const line of tabs.get(id).body.querySelectorAll(".l")) {
        const names = (line.dataset.n || "").split(" ");
        line.classList.toggle("on", names.some((name) => own.has(name)));
      }
    }
    for (const line of at("script").querySelectorAll(".l.on")) line.classList.remove("on");
    // A script that is newer than its steps may have others in these lines.
    const written = step && !at("steps").classList.contains("stale") && at("s" + step.line);
    if (written) written.classList.add("on");
    reveal();
  };
  // Brings the first marked line of the panel in sight.
  const reveal = () => {
    const { panel, body } = tabs.get(shown());
    const first = MARKED.includes(shown()) && body.querySelector(".on");
    const box = panel.parentElement;
    if (first && getComputedStyle(box).overflowY !== "visible") {
      const line = first.getBoundingClientRect(), frame = box.getBoundingClientRect();
      if (line.top < frame.top || line.bottom > frame.bottom) box.scrollTop += line.top - frame.top - frame.height / 3;
    }
  };

  // Steps.
  const choose = async (number) => {
    chosen = number;
    for (const it of at("steps").querySelectorAll("button")) {
      if (Number(it.dataset.step) === number) it.setAttribute("aria-current", "step");
      else it.removeAttribute("aria-current");
    }
    mark();
    const now = (asked += 1);
    const answer = await fetch("steps/" + number).catch(() => null);
    // A later choice, or a later save, has asked again meanwhile.
    if (!answer || !answer.ok || now !== asked) return;
    tabs.get("step").body.innerHTML = (await answer.json()).html;
  };
  const button = (number, ...children) => {
    const it = make("button", { type: "button", "data-step": number }, ...children);
    it.addEventListener("click", () => {
      choose(number);
      if (!MARKED.includes(shown())) show("step");
    });
    return make("li", {}, it);
  };
  const list = () => {
    const rows = steps.map((step, n) => {
      const call = make("code");
      call.innerHTML = step.call;
      const loops = step.loops.map((it) => make("span", { class: "loop" }, it));
      const number = make("span", { class: "number" }, String(n + 1));
      return button(n + 1, number, make("span", { class: "call-of" }, call, ...loops));
    });
    const start = button(0, make("span", { class: "number" }, "0"), make("span", { class: "call-of" }, "The program"));
    at("steps").replaceChildren(start, ...rows);
  };
  at("steps").replaceChildren(make("li", { class: "quiet" }, NONE));
  at("steps").addEventListener("keydown", (event) => {
    const all = [...at("steps").querySelectorAll("button")], now = all.indexOf(document.activeElement);
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    all[to].focus();
    all[to].click();
  });

  // What a panel says above its content.
  const say = (it) => {
    const { tab, dot, panel, notice, extra } = tabs.get(it.id);
    panel.classList.toggle("stale", it.stale);
    tab.classList.toggle("stale", it.stale);
    dot.hidden = !it.changed;
    notice.hidden = !it.stale && !it.progress;
    notice.textContent = it.progress ? it.progress + "…" : "Of an earlier version of the script.";
    notice.classList.toggle("busy", Boolean(it.progress));
    if (!it.why || it.progress) return extra.replaceChildren();
    const why = make("p");
    why.innerHTML = it.why;
    const run = make("button", { type: "button", class: "run" }, "Run on the virtual GPU");
    run.addEventListener("click", () => {
      run.disabled = true;
      fetch("virtual-gpu", { method: "POST" }).catch(() => (run.disabled = false));
    });
    extra.replaceChildren(why, run);
  };

  const HEARD = {
    state: (it) => {
      const marks = { wrong: "✗ ", missing: "✗ ", failed: "✗ ", working: "… ", legal: "" };
      const words = it.words || { working: "Working…", failed: "The work could not be done." }[it.state] || "";
      document.title = marks[it.state] + it.name;
      at("name").textContent = it.name;
      const state = at("state");
      state.dataset.state = it.state;
      state.classList.toggle("busy", it.busy);
      if (state.textContent !== words) state.textContent = words;
      it.panels.forEach(say);
      at("steps").classList.toggle("stale", it.steps_stale);
      say({ id: "step", stale: it.steps_stale });
      mark();
    },
    script: (it) => {
      at("script").innerHTML = it.html;
      mark();
      const bad = at("script").querySelector(".l.bad, .finding");
      if (bad) bad.scrollIntoView({ block: "nearest" });
      const finding = at("script").querySelector(".finding");
      if (finding) finding.scrollIntoView({ block: "nearest" });
    },
    steps: (it) => {
      const wasLast = chosen === null || chosen >= steps.length;
      steps = it.steps;
      list();
      choose(wasLast ? steps.length : chosen);
    },
    panel: (it) => {
      const { body } = tabs.get(it.id);
      body.innerHTML = it.html;
      if (!it.html) body.replaceChildren(make("p", { class: "quiet" }, NONE));
      mark();
    },
    changes: (it) => {
      const { body } = tabs.get("changes");
      const folded = [...body.querySelectorAll("details:not([open])")].map((it) => it.dataset.of);
      body.innerHTML = it.html;
      // What somebody has folded up stays so.
      for (const it of body.querySelectorAll("details")) it.open = !folded.includes(it.dataset.of);
    },
  };
  const events = new EventSource("events");
  for (const [name, hear] of Object.entries(HEARD)) {
    events.addEventListener(name, (event) => hear(JSON.parse(event.data)));
  }
  events.addEventListener("open", () => (at("away").hidden = true));
  events.addEventListener("error", () => (at("away").hidden = false));
  show(shown());
})();
