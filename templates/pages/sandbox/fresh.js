// Keeps the conversation fresh: only what changed is replaced. What somebody unfolded, typed or reads stays as it is.
"use strict";
const EVERY_MS = 2000;
const timeline = document.getElementById("timeline");
const sources = new WeakMap(); // each piece as the server wrote it
let tag = "";

function pieces() {
  return ["state", "timeline", "closing"].flatMap((id) => [...document.getElementById(id).children]);
}

// Somebody types in it or chooses from it: it waits until they are done.
function busy(piece) {
  const active = document.activeElement;
  if (piece.contains(active) && active.matches("textarea, select, input")) return true;
  const texts = [...piece.querySelectorAll("textarea")];
  return texts.some((text) => text.value !== text.defaultValue || "unsaved" in text.dataset);
}

// Every fold by its summary (numbers in it may change) and by how often that came before.
function folds(piece) {
  const found = new Map();
  const all = [...piece.querySelectorAll("details")];
  if (piece.matches("details")) all.unshift(piece);
  for (const fold of all) {
    const name = (fold.querySelector("summary")?.textContent ?? "").replace(/\d+/g, "#").trim();
    let key = name;
    for (let again = 1; found.has(key); again += 1) key = `${name}/${again}`;
    found.set(key, fold);
  }
  return found;
}

const REACHABLE = "a[href], button, summary, [tabindex]";

function replace(shown, fresh) {
  const open = folds(shown);
  for (const [key, fold] of folds(fresh)) {
    if (open.has(key)) fold.open = open.get(key).open;
  }
  const at = [...shown.querySelectorAll(REACHABLE)].indexOf(document.activeElement);
  shown.replaceWith(fresh);
  if (at >= 0) fresh.querySelectorAll(REACHABLE)[at]?.focus({ preventScroll: true });
}

// True when everything is shown as the server has it.
function sync(shown, fresh) {
  const wanted = new Set([...fresh.children].map((piece) => piece.id));
  for (const piece of [...shown.children]) if (!wanted.has(piece.id)) piece.remove();
  const known = new Map([...shown.children].map((piece) => [piece.id, piece]));
  let whole = true;
  let last = null;
  for (let piece of [...fresh.children]) {
    const source = piece.outerHTML;
    const before = known.get(piece.id);
    if (before && sources.get(before) === source) {
      piece = before;
    } else if (before && busy(before)) {
      piece = before;
      whole = false;
    } else {
      if (before) replace(before, piece);
      sources.set(piece, source);
    }
    const place = last ? last.nextElementSibling : shown.firstElementChild;
    if (place !== piece) shown.insertBefore(piece, place);
    last = piece;
  }
  return whole;
}

// What stands at the top of the window stays there, whatever grows or shrinks above it.
function hold(change) {
  const candidates = [...pieces(), document.getElementById("end")];
  const top = candidates.find((piece) => piece.getBoundingClientRect().bottom > 0);
  const before = top?.getBoundingClientRect().top;
  document.documentElement.classList.add("held");
  change();
  const now = top && document.getElementById(top.id);
  if (now && window.scrollY > 0) window.scrollBy(0, now.getBoundingClientRect().top - before);
  requestAnimationFrame(() => document.documentElement.classList.remove("held"));
}

async function refresh() {
  const headers = tag ? { "If-None-Match": tag } : {};
  const answer = await fetch(timeline.dataset.source, { cache: "no-store", headers });
  if (answer.status !== 200) return;
  const template = document.createElement("template");
  template.innerHTML = await answer.text();
  let whole = true;
  hold(() => {
    for (const fresh of template.content.children) whole = sync(document.getElementById(fresh.id), fresh) && whole;
  });
  tag = whole ? answer.headers.get("ETag") : "";
}

async function watch() {
  // when the server is away for a moment the next try comes soon
  if (!document.hidden) await refresh().catch(() => {});
  setTimeout(watch, EVERY_MS);
}

if (timeline) {
  for (const piece of pieces()) sources.set(piece, piece.outerHTML);
  setTimeout(watch, EVERY_MS);
}
