"use strict";
document.documentElement.classList.add("js");
const sections = [...document.querySelectorAll("section")];
const links = [...document.querySelectorAll("nav a")];
function show() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const section = target ? target.closest("section") : sections[0];
  if (!section) return;
  sections.forEach(each => each.classList.toggle("away", each !== section));
  links.forEach(each => each.classList.toggle("here", each.hash.slice(1) === encodeURIComponent(section.id)));
  const here = links.find(each => each.classList.contains("here"));
  if (here) here.parentElement.scrollTop = here.offsetTop - 8;
  for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
  if (target && target !== section) target.scrollIntoView();
  else scrollTo(0, target ? section.offsetTop - document.querySelector("nav").offsetHeight - 8 : 0);
}
addEventListener("hashchange", show);
show();
const collator = new Intl.Collator(undefined, { numeric: true });
document.querySelectorAll("th[data-sort]").forEach(head => {
  head.tabIndex = 0;
  const sort = () => {
    const column = head.cellIndex, body = head.closest("table").tBodies[0];
    const up = head.getAttribute("aria-sort") !== "ascending";
    const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    const compare = (a, b) => {
      const x = value(a), y = value(b);
      if ((x === "") !== (y === "")) return x === "" ? 1 : -1;
      const order = isNaN(x) || isNaN(y) ? collator.compare(x, y) : x - y;
      return up ? order : -order;
    };
    head.parentElement.querySelectorAll("th").forEach(each => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...[...body.rows].sort(compare));
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
});
const chosen = [...document.querySelectorAll(".filters select")];
function filter() {
  const tags = chosen.map(each => `[data-${each.name}]`).join();
  const misses = (each, one) => one.value && (each.dataset[one.name] ?? one.value) !== one.value;
  document.querySelectorAll(tags).forEach(each =>
    each.classList.toggle("filtered", chosen.some(one => misses(each, one))));
  const rows = [...document.querySelectorAll("tr")].filter(each => each.matches(tags));
  const shown = rows.filter(each => !each.closest(".filtered")).length;
  document.querySelector(".filters output").textContent = `${shown} of ${rows.length} rows are shown`;
}
if (chosen.length) {
  chosen.forEach(each => each.addEventListener("change", filter));
  chosen[0].form.addEventListener("reset", () => setTimeout(filter));
  filter();
}
