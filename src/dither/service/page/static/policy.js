// The text of a policy beside its steps: line numbers, where a finding is, and what an answer wrote.
"use strict";
(() => {
  const work = document.getElementById("policy-work");
  const text = () => document.getElementById("toml");
  const base = () => work.querySelector("#policy-state [name=base]").value;

  const number = () => {
    const gutter = document.getElementById("gutter"), area = text();
    const wrong = new Set([...work.querySelectorAll(".findings .is-error [data-line]")].map((one) => Number(one.dataset.line)));
    const lines = area.value.split("\n").length, parts = [];
    for (let line = 1; line <= lines; line += 1) {
      const one = document.createElement(wrong.has(line) ? "b" : "span");
      one.textContent = line + "\n";
      parts.push(one);
    }
    gutter.replaceChildren(...parts);
    gutter.scrollTop = area.scrollTop;
  };

  // Answers are sent one after the other; each takes along the text that the one before it left.
  const waiting = new Set();
  let added = false;
  work.addEventListener("change", (event) => { if (event.target.name === "value") waiting.add(event.target.id); });
  document.addEventListener("htmx:before:request", (event) => {
    const { body } = event.detail.ctx.request, source = event.detail.ctx.sourceElement;
    if (event.detail.ctx.target?.id !== "policy-work" || !body?.set) return;
    body.set("toml", text().value);
    body.set("base", base());
    if (!source.getAttribute("hx-vals")?.includes('"wrong"')) body.set("wrong", work.querySelector("#policy-state [name=wrong]").value);
    waiting.delete(source.id);
    added = ["add-table", "add-quota"].includes(source.id);
  });

  // What was answered stands in the text, and what the text says stands in the fields.
  const settle = () => {
    const next = document.getElementById("toml-next"), area = text();
    if (next) {
      if (area.value !== next.value) {
        const before = area.value.split("\n"), after = next.value.split("\n");
        const line = after.findIndex((one, at) => one !== before[at]);
        area.value = next.value;
        if (line >= 0) show(line + 1, false);
      }
      next.remove();
    }
    // What waits to be sent, and what somebody is at, stays as it was typed.
    for (const one of work.querySelectorAll("input[name=value]")) {
      if (one !== document.activeElement && !waiting.has(one.id)) one.value = one.getAttribute("value") ?? "";
    }
    if (added) {
      for (const id of ["source", "quota-name", "quota-amount"]) {
        const one = document.getElementById(id);
        if (one) one.value = one.getAttribute("value") ?? "";
      }
    }
    added = false;
    for (const one of work.querySelectorAll("select")) {
      const chosen = one.querySelector("option[selected]");
      one.value = chosen ? chosen.value : "";
    }
    number();
  };

  const show = (line, focuses) => {
    const area = text(), lines = area.value.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    if (focuses) {
      area.focus();
      area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    }
    const height = area.scrollHeight / lines.length;
    area.scrollTop = Math.max(0, (line - 6) * height);
  };

  let from = "";
  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx } = event.detail;
    if (ctx.target?.id === "policy-work" && !ctx.text.includes('id="policy-state"')) {
      // What is no work on the text must not take its place: what was written stays.
      event.preventDefault();
      const told = document.createElement("p"), read = new DOMParser().parseFromString(ctx.text, "text/html");
      told.className = "refusal";
      told.textContent = read.body.textContent.trim();
      document.getElementById("policy-findings").replaceChildren(told);
      return;
    }
    from = work.querySelector(".steps [aria-current]")?.id ?? "";
  });
  document.addEventListener("htmx:after:swap", () => {
    settle();
    const now = work.querySelector(".steps [aria-current]")?.id ?? "";
    // Another step begins at its head, where whoever listens hears what it is.
    if (now !== from && !document.activeElement?.closest(".steps")) {
      const title = document.getElementById("step-title");
      title.tabIndex = -1;
      title.focus();
    }
    work.querySelector(".steps [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    from = now;
  });
  work.addEventListener("click", (event) => {
    const at = event.target.closest("[data-line]");
    if (at) show(Number(at.dataset.line), true);
  });
  work.addEventListener("keydown", (event) => {
    // Enter in a field is an answer.
    if (event.key === "Enter" && event.target.matches("input[name=value]") && !event.ctrlKey) event.target.blur();
    if (event.key === "Enter" && event.target.id === "source") { event.preventDefault(); document.getElementById("add-table").click(); }
  });
  work.addEventListener("input", (event) => { if (event.target.id === "toml") number(); });
  work.addEventListener("scroll", (event) => {
    if (event.target.id === "toml") document.getElementById("gutter").scrollTop = event.target.scrollTop;
  }, true);
  settle();

  // What is not saved is there again when somebody comes back to it in this window.
  const place = `policy ${document.body.dataset.base}`;
  const served = base(), first = text().value;
  const keep = () => {
    const changed = text().value !== first && base() === served;
    if (changed) sessionStorage.setItem(place, JSON.stringify([served, text().value]));
    else sessionStorage.removeItem(place);
  };
  document.addEventListener("htmx:after:swap", keep);
  work.addEventListener("input", (event) => { if (event.target.id === "toml") keep(); });
  work.addEventListener("click", (event) => { if (event.target.id === "discard") sessionStorage.removeItem(place); });
  const [of, held] = JSON.parse(sessionStorage.getItem(place) ?? "[]");
  if (of === served && held !== first) {
    text().value = held;
    // htmx begins by a timer of its own, which may come after the page's load.
    addEventListener("load", () => setTimeout(() => work.querySelector(".steps [aria-current]").click()));
  }
})();
