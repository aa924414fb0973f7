// Asking: the editor, the slider, the builder, and what follows the question as it changes.
"use strict";
(() => {
  const form = document.getElementById("question"), told = document.getElementById("told");

  // A part that comes later says in words what it is.
  let last = document.getElementById("answer")?.dataset.told;
  document.addEventListener("htmx:after:swap", () => {
    const answer = document.getElementById("answer");
    if (answer && answer.dataset.told !== last) {
      last = answer.dataset.told;
      told.textContent = last;
    }
  });

  // --- the stop ----------------------------------------------------------------------------------
  const stop = document.getElementById("stop");
  document.addEventListener("htmx:after:swap", () => {
    if (stop?.childElementCount && !stop.open) {
      stop.showModal();
      stop.querySelector("[autofocus]")?.focus();
    }
  });
  stop?.addEventListener("close", () => { stop.replaceChildren(); document.getElementById("release-open")?.focus(); });

  if (!form) return;

  const area = document.getElementById("sql"), epsilon = document.getElementById("epsilon");
  const slider = document.getElementById("slider"), open = document.getElementById("release-open");
  const price = document.getElementById("price");
  const known = JSON.parse(document.getElementById("known").textContent);
  const changed = () => form.dispatchEvent(new Event("input", { bubbles: true }));

  // --- the editor ------------------------------------------------------------------------------
  const editor = area && globalThis.ditherEditor ? ditherEditor(area, known) : null;
  for (const one of document.querySelectorAll("[data-inserts]")) {
    one.addEventListener("click", () => {
      if (!editor) return;
      const { view } = editor, { from, to } = view.state.selection.main;
      // A name stands apart from what is before and after it, as somebody would type it.
      const before = view.state.sliceDoc(Math.max(from - 1, 0), from), after = view.state.sliceDoc(to, to + 1);
      const insert = `${/[^\s(.]/.test(before) ? " " : ""}${one.dataset.inserts}${/[\w"']/.test(after) ? " " : ""}`;
      view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length } });
      view.focus();
    });
  }

  // --- epsilon: a box and a slider of two digits, by ratios -------------------------------------
  const rounded = (value) => String(Number(value.toPrecision(2)));
  const onSlider = () => {
    const value = Number(epsilon.value);
    if (value > 0) slider.value = String(Math.round(30 * Math.log10(value / 0.01)));
  };
  slider.addEventListener("input", () => { epsilon.value = rounded(0.01 * 10 ** (Number(slider.value) / 30)); });
  epsilon.addEventListener("input", onSlider);
  onSlider();

  // --- what is sent, and what comes back ---------------------------------------------------------
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("htmx:config:request", (event) => {
    const { body } = event.detail.ctx.request;
    if (!(body instanceof FormData)) return;
    for (const [name, value] of [...body.entries()]) if (typeof value === "string" && !value.trim()) body.delete(name);
  });
  let asked = 0, more = 0;
  form.addEventListener("input", () => { asked += 1; more = 0; price.setAttribute("aria-busy", "true"); open.disabled = true; });
  document.addEventListener("htmx:after:swap", () => {
    const found = price.querySelector(".priced");
    if (!found || found.dataset.seen) return;
    found.dataset.seen = "yes";
    price.setAttribute("aria-busy", "false");
    open.disabled = !found.dataset.ready;
    editor?.mark(JSON.parse(found.dataset.marks));
    // A curve of few points is completed while nobody types.
    if (found.dataset.more && more++ < 8) {
      const now = asked;
      setTimeout(() => { if (now === asked) form.dispatchEvent(new CustomEvent("more")); }, 30);
    }
  });

  // --- the builder -------------------------------------------------------------------------------
  const part = (name) => document.getElementById(`b-${name}`);
  if (!part("table")) return;
  const fill = (select, options, first) => {
    select.replaceChildren(...(first ? [select.options[0]] : []));
    for (const [value, text] of options) select.add(new Option(text, value));
  };
  const table = () => known.private[Number(part("table").value)] ?? { columns: [] };
  const column = (name) => table().columns.find((one) => one.name === name);
  const PLAIN = { avg: "AVG", sum: "SUM", median: "MEDIAN", stddev: "STDDEV" };
  const measures = () => {
    const of = PLAIN[part("measure").value];
    part("column").disabled = !of;
    fill(part("column"), of ? table().columns.filter((one) => one.bounded).map((one) => [one.name, one.name]) : []);
  };
  const chosen = () => {
    const all = table().columns.filter((one) => !one.who).map((one) => [one.name, one.name]);
    fill(part("group"), all, true);
    fill(part("where"), all, true);
    part("measure").options[1].disabled = !table().unit;
    measures();
    values();
  };
  const values = () => {
    const found = column(part("where").value);
    part("sign").disabled = part("value").disabled = !found;
    part("value").value = found?.values[0] ?? "";
    const list = document.getElementById("b-values");
    list.replaceChildren(...(found?.values ?? []).map((one) => new Option(one, one)));
  };
  const written = (found, value) => {
    if (found.number && /^-?\d+(\.\d+)?$/.test(value)) return value;
    if (found.kind === "boolean" && /^(true|false)$/i.test(value)) return value.toUpperCase();
    const text = `'${value.replaceAll("'", "''")}'`;
    if (found.kind === "date") return `DATE ${text}`;
    return found.kind === "timestamp" ? `TIMESTAMP ${text}` : text;
  };
  const plain = (name) => name.toLowerCase().replace(/[^a-z0-9_]/g, "_");
  const sql = () => {
    const of = table(), what = part("measure").value;
    const group = column(part("group").value), where = column(part("where").value);
    const unit = of.columns.find((one) => one.who), counted = column(part("column").value);
    let measure = "COUNT(*) AS n";
    if (what === "people" && unit) measure = `COUNT(DISTINCT ${unit.sql}) AS people`;
    else if (PLAIN[what] && counted) measure = `${PLAIN[what]}(${counted.sql}) AS ${plain(`${what}_${counted.name}`)}`;
    const lines = [`SELECT ${group ? `${group.sql}, ` : ""}${measure}`, `FROM ${of.sql}`];
    if (where && part("value").value) lines.push(`WHERE ${where.sql} ${part("sign").value} ${written(where, part("value").value)}`);
    if (group) lines.push(`GROUP BY ${group.sql}`);
    return lines.join("\n");
  };
  const write = () => {
    if (editor) editor.set(sql());
    else { area.value = sql(); changed(); }
  };
  fill(part("table"), known.private.map((one, at) => [String(at), one.name]));
  chosen();
  part("table").addEventListener("change", chosen);
  part("measure").addEventListener("change", measures);
  part("where").addEventListener("change", values);
  for (const name of ["table", "measure", "column", "group", "where", "sign", "value"]) part(name).addEventListener("change", write);
  document.getElementById("b-write").addEventListener("click", write);
})();
