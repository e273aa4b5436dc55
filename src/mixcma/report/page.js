"use strict";

// The figures are in the page as JSON. They are drawn one after the other when their section is opened.

const theme = JSON.parse(document.getElementById("theme").textContent);
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const views = {};
const parsed = new Map();
const config = {
  responsive: true,
  displaylogo: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
};
const fingers = matchMedia("(pointer: coarse)");

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : prefersDark.matches;
}

function isPlainObject(value) {
  return value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;
}

// A view removes the entries that it sets to null.
function merged(base, change) {
  const result = { ...base };
  for (const [key, value] of Object.entries(change ?? {})) {
    if (value === null) delete result[key];
    else result[key] = isPlainObject(value) ? merged(isPlainObject(base[key]) ? base[key] : {}, value) : value;
  }
  return result;
}

// Replace every colour by its counterpart of the dark theme; data stay as they are.
function coloured(value) {
  if (Array.isArray(value)) return typeof value[0] === "object" ? value.map(coloured) : value;
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [
      key,
      /color$/.test(key) && typeof entry === "string" ? (theme.dark[entry] ?? entry) : coloured(entry),
    ]),
  );
}

function specification(figure) {
  if (!parsed.has(figure)) parsed.set(figure, JSON.parse(figure.querySelector("script").textContent));
  return parsed.get(figure);
}

function draw(figure) {
  const base = specification(figure);
  const name = views[figure.dataset.group] ?? base.first;
  const view = base.views[name] ?? { data: [], layout: {} };
  const paint = isDark() ? coloured : (value) => value;
  const data = base.data.map((trace, index) => paint(merged(trace, view.data[index])));
  const layout = paint({ ...merged(base.layout, view.layout), template: theme.template });
  layout.yaxis.uirevision = name; // keep the zoom, unless the view changes
  if (fingers.matches) layout.dragmode = false; // so that a finger on a figure scrolls the page
  const displayModeBar = figure.classList.contains("large") ? "hover" : false;
  Plotly.react(figure.querySelector(".canvas"), data, layout, { ...config, displayModeBar });
  figure.dataset.drawn = "true";
  const note = figure.nextElementSibling;
  if (note?.classList.contains("note")) note.textContent = view.note ?? "";
}

let waiting = [];

function drawNext() {
  const figure = waiting.shift();
  if (!figure) return;
  if (!figure.closest("[hidden]")) draw(figure);
  setTimeout(drawNext, 0);
}

function drawSoon(figures) {
  const idle = waiting.length === 0;
  waiting = [...new Set([...figures, ...waiting])];
  if (idle) setTimeout(drawNext, 0);
}

function redrawAll() {
  const open = document.querySelector("[role=tabpanel]:not([hidden])");
  for (const figure of document.querySelectorAll("figure[data-drawn]")) delete figure.dataset.drawn;
  drawSoon(open.querySelectorAll("figure.chart"));
}

// Sections

const tabs = [...document.querySelectorAll("[role=tab]")];

function open(tab) {
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
  }
  tab.scrollIntoView({ block: "nearest", inline: "center" });
  const panel = document.getElementById(tab.getAttribute("aria-controls"));
  drawSoon(panel.querySelectorAll("figure.chart:not([data-drawn])"));
  for (const canvas of panel.querySelectorAll("figure[data-drawn] .canvas")) Plotly.Plots.resize(canvas);
}

function tabOfAddress() {
  return tabs.find((tab) => "#" + tab.getAttribute("aria-controls") === location.hash) ?? tabs[0];
}

for (const [index, tab] of tabs.entries()) {
  tab.addEventListener("click", () => {
    history.replaceState(null, "", "#" + tab.getAttribute("aria-controls"));
    open(tab);
    scrollTo(0, Math.min(scrollY, document.querySelector("main").offsetTop - tab.parentElement.offsetHeight));
  });
  tab.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = tabs[(steps[event.key] + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
}
addEventListener("hashchange", () => open(tabOfAddress()));

// Views of a group of figures

for (const button of document.querySelectorAll("button[data-view]")) {
  button.addEventListener("click", () => {
    const { group, view } = button.dataset;
    views[group] = view;
    for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
    drawSoon(document.querySelectorAll(`figure[data-group="${group}"]`));
  });
}

// Light and dark

document.getElementById("theme-toggle").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  redrawAll();
});
prefersDark.addEventListener("change", redrawAll);

// Tables

// Numbers come before words.
function compared(a, b) {
  const [x, y] = [a, b].map((text) => Number(text.replace(/^(-?)inf$/, "$1Infinity")));
  if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
  if (isNaN(x)) return a.localeCompare(b);
  return x === y ? 0 : x - y;
}

function sortBy(heading) {
  const table = heading.closest("table");
  const column = [...heading.parentElement.children].indexOf(heading);
  const falling = heading.getAttribute("aria-sort") === "ascending";
  for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const key = (row) => row.children[column].dataset.sort;
  const sign = falling ? -1 : 1;
  const rows = [...table.tBodies[0].rows].sort((a, b) => sign * compared(key(a), key(b)));
  table.tBodies[0].append(...rows);
}

for (const heading of document.querySelectorAll("table.sortable th")) {
  heading.querySelector("button").addEventListener("click", () => sortBy(heading));
}

// Copying

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = text;
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", async () => {
    await copy(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

open(tabOfAddress());
