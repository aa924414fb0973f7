// What every view shares: the token that goes with each change, keys, the palette, language and colours.
"use strict";
(() => {
  const body = document.body;

  // A change must bring along what only a page of this service can read.
  const csrf = () => {
    const name = body.dataset.csrf + "=";
    const found = document.cookie.split("; ").find((one) => one.startsWith(name));
    return found ? decodeURIComponent(found.slice(name.length)) : "";
  };
  document.addEventListener("htmx:config:request", (event) => {
    event.detail.ctx.request.headers["X-CSRF-Token"] = csrf();
  });

  // A part that takes another's place must not send whoever was in it back to the beginning.
  let held = null;
  document.addEventListener("htmx:before:swap", (event) => {
    const at = document.activeElement, { target } = event.detail.ctx;
    held = at && at !== body && target?.contains?.(at) ? { at: at.id, target: target.id } : null;
  });
  document.addEventListener("htmx:after:swap", () => {
    const from = held, now = document.activeElement;
    held = null;
    if (!from || (now && now !== body)) return;
    const target = from.target ? document.getElementById(from.target) : null;
    const again = from.at ? document.getElementById(from.at) : null;
    const heading = document.getElementById(target?.dataset.heading ?? "") ?? target?.querySelector("h1, h2, h3") ?? target ?? document.getElementById("main");
    const next = again && !again.disabled ? again : heading;
    if (next === heading && !next.hasAttribute("tabindex")) next.tabIndex = -1;
    next.focus();
  });

  // What went wrong on the way is told where it was asked.
  document.addEventListener("htmx:error", () => tell(navigator.onLine ? "…" : "offline"));
  const tell = (text) => { document.getElementById("told").textContent = text; };

  for (const select of document.querySelectorAll("select[data-cookie]")) {
    select.addEventListener("change", () => {
      const secure = location.protocol === "https:" ? "; secure" : "";
      document.cookie = `${select.dataset.cookie}=${select.value}; path=/; max-age=31536000; samesite=strict${secure}`;
      if (select.id === "theme") document.documentElement.dataset.theme = select.value;
      else location.reload();
    });
  }

  // --- the palette -----------------------------------------------------------------------------
  const palette = document.getElementById("palette");
  const keys = document.getElementById("keys");
  const options = () => [...palette.querySelectorAll("li:not([hidden])")];
  const select = (chosen) => {
    for (const one of palette.querySelectorAll("li")) one.setAttribute("aria-selected", String(one === chosen));
    const input = palette.querySelector("input");
    if (chosen) { input.setAttribute("aria-activedescendant", chosen.id); chosen.scrollIntoView({ block: "nearest" }); }
    else input.removeAttribute("aria-activedescendant");
  };
  const follow = (option) => {
    if (!option) return;
    palette.close();
    if (option.dataset.address) location.href = option.dataset.address;
    else document.getElementById(option.dataset.presses)?.click();
  };
  const openPalette = () => {
    const input = palette.querySelector("input");
    input.value = "";
    for (const one of palette.querySelectorAll("li")) one.hidden = false;
    palette.querySelector(".none").hidden = true;
    palette.showModal();
    select(options()[0]);
  };
  if (palette) {
    for (const one of document.querySelectorAll("[data-opens=palette]")) one.addEventListener("click", openPalette);
    palette.querySelector("input").addEventListener("input", (event) => {
      const wanted = event.target.value.trim().toLowerCase();
      for (const one of palette.querySelectorAll("li")) one.hidden = !one.textContent.toLowerCase().includes(wanted);
      palette.querySelector(".none").hidden = options().length > 0;
      select(options()[0]);
    });
    palette.addEventListener("keydown", (event) => {
      const shown = options(), at = shown.findIndex((one) => one.getAttribute("aria-selected") === "true");
      if (event.key === "ArrowDown") select(shown[Math.min(at + 1, shown.length - 1)]);
      else if (event.key === "ArrowUp") select(shown[Math.max(at - 1, 0)]);
      else if (event.key === "Enter") follow(shown[at]);
      else return;
      event.preventDefault();
    });
    palette.addEventListener("click", (event) => {
      const option = event.target.closest("li");
      if (option) follow(option);
      else if (event.target === palette) palette.close();
    });
  }

  // --- keys ------------------------------------------------------------------------------------
  let afterG = 0;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      const main = document.querySelector("main button.main:not(:disabled)");
      if (main) { event.preventDefault(); main.click(); }
      return;
    }
    if (!palette) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (palette.open) palette.close(); else openPalette();
      return;
    }
    const writing = event.target.closest("input, textarea, select, [contenteditable=true], dialog[open]");
    if (writing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") keys.showModal();
    else if (event.key === "g") afterG = Date.now();
    else if (Date.now() - afterG < 1200) {
      afterG = 0;
      document.querySelector(`.places a[data-go="${CSS.escape(event.key)}"]`)?.click();
    }
  });

  // --- small things ----------------------------------------------------------------------------
  document.addEventListener("click", (event) => {
    const copies = event.target.closest("[data-copies]");
    if (copies) {
      navigator.clipboard?.writeText(document.getElementById(copies.dataset.copies).textContent);
      if (copies.dataset.copied) tell(copies.dataset.copied);
    }
    const opens = event.target.closest("[data-dialog]");
    if (opens) document.getElementById(opens.dataset.dialog)?.showModal();
    const closes = event.target.closest("[data-closes]");
    if (closes) closes.closest("dialog")?.close();
    const prints = event.target.closest("[data-prints]");
    if (prints) print();
  });
})();
