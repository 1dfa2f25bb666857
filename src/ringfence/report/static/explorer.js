// The explorer: it moves the class `off` about, and says what a cell's facts are.
// The state stands in the address ("#iteration=2&task=all&layers=truth,paths&cell=3,4"), so that
// a view can be linked to.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const one = (id) => document.getElementById(id);
  const parts = all("#explorer [data-layer], #explorer [data-i]");
  const boxes = all("#layers input"), slider = one("iteration"), play = one("play");
  const task = one("task"); // null where there is one task
  const map = one("map"), tip = one("tip"), ring = one("ring"); // null where there are no cells
  const state = {
    i: data.selected, task: "all", cell: null,
    layers: new Set(boxes.filter((b) => b.checked).map((b) => b.value)),
  };
  // Native tooltips are for pages without a script; their text becomes the facts of a cell.
  const cells = new Map(all("#cells .cell").map((cell) => {
    const title = cell.querySelector("title"), facts = title.textContent.split("\n");
    title.remove();
    return [cell.dataset.cell, { cell, facts }];
  }));

  function visible({ layer, i, only, task: of }) {
    return (!layer || state.layers.has(layer)) && (!i || +i === state.i) &&
      (!only || only === state.task) && (!of || state.task === "all" || of === state.task);
  }

  function render() {
    for (const part of parts) part.classList.toggle("off", !visible(part.dataset));
    for (const line of all(".guide")) {
      const x = line.dataset.x.split(" ")[state.i - 1];
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
    }
    for (const row of all("tr[data-row]"))
      row.classList.toggle("current", +row.dataset.row === state.i);
    for (const goal of all("#map [data-goal]"))
      goal.classList.toggle("dim", state.task !== "all" && goal.dataset.goal !== state.task);
    if (map) map.classList.toggle("single", state.task !== "all");
    for (const box of boxes) box.checked = state.layers.has(box.value);
    slider.value = state.i;
    slider.setAttribute("aria-valuetext", "iteration " + state.i);
    one("shown").textContent = state.i + " of " + data.count;
    if (task) task.value = state.task;
    describe();
  }

  function number(x) {
    return x === 0 ? "0" : Math.abs(x) < 0.001 ? x.toExponential(1) : String(+x.toPrecision(3));
  }

  function facts(name) {
    const [row, col] = name.split(",").map(Number), at = row * data.cols + col;
    const said = [...cells.get(name).facts], n = state.i - 1;
    const forbids = data.forbidden[n][at] === "1";
    const cost = data.cost[n][at];
    said.push("The constraint of iteration " + state.i +
      (forbids ? " forbids it (cost " + number(cost) + ")." : " allows it."));
    const visits = data.visits[n][state.task];
    if (visits) said.push((state.task === "all" ? "The learners visit it " :
      "The learner of " + data.tasks[+state.task] + " visits it ") +
      number(visits[at] || 0) + " times an episode in this iteration" +
      (state.task === "all" ? " (mean of tasks)." : "."));
    return said;
  }

  function describe() {
    if (!tip) return;
    const known = state.cell && cells.get(state.cell);
    tip.classList.toggle("off", !known);
    ring.classList.toggle("off", !known);
    if (!known) return;
    tip.replaceChildren(...facts(state.cell).map((text) => {
      const p = document.createElement("p");
      p.textContent = text;
      return p;
    }));
    for (const name of ["x", "y", "width", "height"])
      ring.setAttribute(name, known.cell.getAttribute(name));
    const box = known.cell.getBoundingClientRect();
    const around = tip.parentElement.getBoundingClientRect();
    const left = box.left - around.left + box.width / 2 - tip.offsetWidth / 2;
    const most = Math.max(0, around.width - tip.offsetWidth);
    tip.style.left = Math.min(Math.max(0, left), most) + "px";
    const above = box.top - around.top - tip.offsetHeight - 8;
    const fits = box.top - tip.offsetHeight - 8 > 0;
    tip.style.top = (fits ? above : box.bottom - around.top + 8) + "px";
  }

  function change(values) {
    Object.assign(state, values);
    render();
    const link = "#iteration=" + state.i + "&task=" + state.task + "&layers=" +
      [...state.layers].join(",");
    try { history.replaceState(null, "", link); } catch (e) { /* not allowed in some frames */ }
  }

  function follow() {
    const wish = new URLSearchParams(location.hash.slice(1));
    const i = Number(wish.get("iteration"));
    if (Number.isInteger(i) && i >= 1 && i <= data.count) state.i = i;
    const of = wish.get("task");
    if (of === "all" || (task && /^\d+$/.test(of) && +of < data.tasks.length)) state.task = of;
    if (wish.has("layers")) {
      const names = boxes.map((box) => box.value);
      state.layers = new Set(wish.get("layers").split(",").filter((n) => names.includes(n)));
    }
    if (cells.has(wish.get("cell"))) state.cell = wish.get("cell");
    render();
  }

  let timer = null;
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (state.i >= data.count) change({ i: 1 });
    play.textContent = "Pause";
    timer = setInterval(() => {
      if (state.i >= data.count) return stop();
      change({ i: state.i + 1 });
    }, 1000);
  });
  slider.addEventListener("input", () => { stop(); change({ i: +slider.value }); });
  if (task) task.addEventListener("change", () => change({ task: task.value }));
  for (const box of boxes) box.addEventListener("change", () => {
    state.layers[box.checked ? "add" : "delete"](box.value);
    change({});
  });
  for (const hit of all("[data-goto]"))
    hit.addEventListener("click", () => { stop(); change({ i: +hit.dataset.goto }); });

  const board = one("cells");
  if (board) {
    const look = (cell) => { state.cell = cell; describe(); };
    board.addEventListener("pointerover", (e) => look(e.target.dataset.cell || null));
    board.addEventListener("pointerleave", () => look(null));
    board.addEventListener("focus", () => look(state.cell || "0,0"));
    board.addEventListener("blur", () => look(null));
    board.addEventListener("keydown", (e) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      if (e.key === "Escape") return look(null);
      if (!step[e.key]) return;
      e.preventDefault();
      const [r, c] = (state.cell || "0,0").split(",").map(Number), [dr, dc] = step[e.key];
      const next = (r + dr) + "," + (c + dc);
      if (cells.has(next)) look(next);
    });
  }
  addEventListener("hashchange", follow);
  follow();
})();
