// Files that are dropped or chosen go to the server as they are, and its verdict is shown.
"use strict";
(() => {
  const form = document.getElementById("check"), input = document.getElementById("files");
  const verdict = document.getElementById("verdict");
  const csrf = () => {
    const name = document.body.dataset.csrf + "=";
    const found = document.cookie.split("; ").find((one) => one.startsWith(name));
    return found ? decodeURIComponent(found.slice(name.length)) : "";
  };
  const tell = (text, kind) => {
    const said = document.createElement("div");
    said.className = kind;
    said.textContent = text;
    verdict.replaceChildren(said);
  };
  const read = (file) => new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done({ name: file.name, data: String(reader.result).split(",")[1] || "" });
    reader.onerror = failed;
    reader.readAsDataURL(file);
  });
  let last = 0;
  const check = async (files) => {
    if (!files.length) return;
    const mine = ++last;
    if (files.length > Number(form.dataset.files)) return tell(form.dataset.many, "warning");
    const size = files.reduce((sum, one) => sum + one.size, 0);
    if (size > Number(form.dataset.most)) return tell(form.dataset.large, "warning");
    tell(form.dataset.wait, "note");
    try {
      const body = JSON.stringify({ files: await Promise.all(files.map(read)) });
      const headers = { "content-type": "application/json", "x-csrf-token": csrf(), "hx-request": "true" };
      const found = await fetch(document.body.dataset.base + "/check", { method: "POST", headers, body });
      const away = found.headers.get("hx-redirect");
      if (away) { location.href = away; return; }
      const kind = found.headers.get("content-type") || "";
      if (mine !== last) return;
      if (!kind.startsWith("text/html")) return tell(found.status === 413 ? form.dataset.large : form.dataset.failed, "warning");
      // The server's own template, in which all that a file says stands escaped.
      verdict.innerHTML = await found.text();
    } catch { if (mine === last) tell(form.dataset.failed, "warning"); }
  };
  input.addEventListener("change", () => { check([...input.files]); input.value = ""; });
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const name of ["dragenter", "dragover"]) document.addEventListener(name, (event) => { event.preventDefault(); form.classList.add("over"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) form.classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    check([...event.dataTransfer.files]);
  });
})();
