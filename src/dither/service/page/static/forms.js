// A form of a question: another table opens its own form, and a column's name goes where one writes.
"use strict";
(() => {
  let last = null;
  const form = document.querySelector("form.asked");
  if (!form) return;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("[data-reloads]").addEventListener("change", (event) => {
    event.stopPropagation();
    location.search = new URLSearchParams({ table: event.target.value }).toString();
  });
  form.addEventListener("focusin", (event) => {
    if (event.target.matches("input:not([inputmode])")) last = event.target;
  });
  form.addEventListener("click", (event) => {
    const chip = event.target.closest("[data-inserts]");
    if (!chip) return;
    const into = last ?? form.querySelector("input:not([inputmode])");
    if (!into) return;
    const name = /^[A-Za-z_]\w*$/.test(chip.dataset.inserts) ? chip.dataset.inserts : `"${chip.dataset.inserts}"`;
    into.setRangeText(name, into.selectionStart, into.selectionEnd, "end");
    into.focus();
    into.dispatchEvent(new Event("input", { bubbles: true }));
  });
})();
