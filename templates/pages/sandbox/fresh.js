// Keeps the conversation fresh: what changed replaces what is shown; what somebody unfolded stays unfolded.
"use strict";
const timeline = document.getElementById("timeline");
const EVERY_MS = 2000;

function unfolded() {
  return new Set([...timeline.querySelectorAll("details[open]")].map(path));
}

function path(details) {
  const article = details.closest("[id]");
  const inside = [...article.querySelectorAll("details")].indexOf(details);
  return `${article.id}/${inside}`;
}

async function refresh() {
  try {
    const answer = await fetch(timeline.dataset.source, { cache: "no-store" });
    if (!answer.ok) return;
    const text = await answer.text();
    if (text === timeline.dataset.shown) return;
    const open = unfolded();
    timeline.innerHTML = text;
    timeline.dataset.shown = text;
    for (const details of timeline.querySelectorAll("details")) {
      if (open.has(path(details))) details.open = true;
    }
  } catch {
    // the server is away for a moment; the next try comes soon
  }
}

if (timeline) setInterval(refresh, EVERY_MS);
