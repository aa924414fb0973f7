// The slider looks values up in the table that the server made; nothing is computed here.
"use strict";
(() => {
  const form = document.getElementById("odds"), slider = document.getElementById("epsilon");
  const rows = document.querySelectorAll("#steps tbody tr");
  const show = () => {
    const row = rows[Number(slider.value)];
    const prior = Number(form.querySelector("input[name=prior]:checked").value);
    const cells = row.querySelectorAll("td"), reached = cells[2 + prior];
    document.getElementById("says-epsilon").textContent = cells[0].textContent;
    document.getElementById("says-factor").textContent = cells[1].textContent;
    document.getElementById("says-after").textContent = reached.textContent;
    slider.setAttribute("aria-valuetext", "ε = " + cells[0].textContent);
    document.getElementById("here").setAttribute("d", `M${row.dataset.x} 16V220`);
    const dot = document.getElementById("dot");
    dot.setAttribute("cx", row.dataset.x);
    dot.setAttribute("cy", reached.dataset.y);
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
