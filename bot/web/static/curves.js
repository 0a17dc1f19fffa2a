// Head and base over each other: reads the numbers behind the picture and draws charts that tell what is under the pointer.
import { HEIGHT, WIDTH, element, number, path, scale, shape, whole } from "./drawing.js";

const zip = (side, column) => side.at.map((step, place) => [step, side[column][place]]);

function chart(metric) {
  const unit = metric.unit ? ` ${metric.unit}` : "";
  const told = element("output", "told");
  const caption = element("figcaption", "", element("code", "", metric.name), told);
  const all = metric.sides.flatMap((side) => [...side.low, ...side.high]).filter((value) => value !== null);
  const figure = element("figure", "chart overlay", caption);
  if (!all.length) {
    figure.append(element("p", "quiet", "No run wrote a finite value."));
    return figure;
  }
  const bends = Math.min(...all) > 0 && Math.max(...all) / Math.min(...all) > 20;
  const draw = (logarithmic) => {
    const drawing = canvas(metric, all, logarithmic, told, unit);
    figure.querySelector("svg")?.remove();
    caption.after(drawing);
  };
  draw(false);
  figure.append(ends(metric, all, unit));
  if (bends) figure.append(logarithm(draw));
  const table = marks(metric, unit);
  if (table) figure.append(table);
  return figure;
}

function canvas(metric, all, logarithmic, told, unit) {
  const steps = metric.sides.flatMap((side) => side.at);
  const x = scale(steps, 2, WIDTH - 2), y = scale(all, HEIGHT - 4, 4, logarithmic);
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", tabindex: 0 });
  const summary = metric.sides.map((side) => `${side.side} ends at ${number(side.centre.at(-1))}${unit}`).join(", ");
  drawing.setAttribute("aria-label", `${metric.name}: ${summary}`);
  drawing.append(shape("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1 }));
  for (const side of [...metric.sides].reverse()) {
    const band = path(zip(side, "high"), x, y) + path(zip(side, "low").reverse(), x, y).replace("M", "L") + "Z";
    drawing.append(shape("path", { class: `band ${side.side}`, d: band }));
    drawing.append(shape("path", { class: `line ${side.side}`, d: path(zip(side, "centre"), x, y) }));
    if (side.at.length === 1) drawing.append(shape("path", { class: `dot ${side.side}`, d: `M${x(side.at[0])} ${y(side.centre[0])}h.01` }));
    for (const step of side.diverged) drawing.append(shape("line", { class: `diverged ${side.side}`, x1: x(step), x2: x(step), y1: 0, y2: HEIGHT }));
  }
  const hair = shape("line", { class: "hair", x1: -9, x2: -9, y1: 0, y2: HEIGHT });
  drawing.append(hair);
  follow(drawing, hair, metric, x, told);
  return drawing;
}

// the pointer or the arrow keys choose a step
function follow(drawing, hair, metric, x, told) {
  const steps = [...new Set(metric.sides.flatMap((side) => side.at))].sort((one, other) => one - other);
  let chosen = steps.length - 1;
  const show = () => {
    const step = steps[chosen];
    hair.setAttribute("x1", x(step));
    hair.setAttribute("x2", x(step));
    told.textContent = `step ${whole(step)}: ` + metric.sides.map((side) => `${side.side} ${number(nearest(side, step))}`).join(", ");
  };
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    chosen = steps.reduce((best, step, place) => (Math.abs(x(step) - at) < Math.abs(x(steps[best]) - at) ? place : best), 0);
    show();
  });
  drawing.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    chosen = Math.min(steps.length - 1, Math.max(0, chosen + move));
    show();
  });
  show();
}

function nearest(side, step) {
  const place = side.at.reduce((best, at, here) => (Math.abs(at - step) < Math.abs(side.at[best] - step) ? here : best), 0);
  return side.centre[place];
}

function ends(metric, all, unit) {
  const steps = metric.sides.flatMap((side) => side.at);
  return element("div", "ends", element("span", "", `step ${whole(Math.min(...steps))}`),
    element("span", "", `${number(Math.min(...all))} to ${number(Math.max(...all))}${unit}`), element("span", "", whole(Math.max(...steps))));
}

function logarithm(draw) {
  const box = Object.assign(element("input", ""), { type: "checkbox" });
  box.addEventListener("change", () => draw(box.checked));
  return element("label", "quiet", box, " logarithmic");
}

// the same in numbers: both sides on their way, where they got to, and where they broke
function marks(metric, unit) {
  const names = metric.sides.map((side) => side.side);
  const rows = metric.marks.map((mark) => [`step ${whole(mark.step)}`, ...names.map((name) => `${number(mark[name])}${unit}`)]);
  const goal = metric.goal;
  if (goal) {
    const what = goal.of === "target" ? `target ${number(goal.level)}${unit}` : `base's ${number(goal.level)}${unit}`;
    rows.push([`reaches ${what}`, ...names.map((name) => arrival(goal[name]))]);
  }
  if (metric.sides.some((side) => side.diverged.length)) {
    rows.push(["diverges", ...metric.sides.map((side) => (side.diverged.length ? `step ${side.diverged.map(whole).join(", ")}` : "no"))]);
  }
  if (!rows.length) return null;
  const head = element("tr", "", element("th", ""), ...metric.sides.map((side) => element("th", `n ${side.side}`, `${side.side} (${side.runs})`)));
  const body = rows.map(([name, ...cells]) => element("tr", "", element("td", "", name), ...cells.map((cell) => element("td", "n", cell))));
  return element("table", "marks", element("thead", "", head), element("tbody", "", ...body));
}

function arrival(found) {
  if (!found || !found.runs) return "never";
  const seconds = found.seconds === null ? "" : `, ${number(found.seconds)} s`;
  const some = found.runs < found.of ? ` (${found.runs} of ${found.of} runs)` : "";
  return `step ${whole(found.step)}${seconds}${some}`;
}

async function replace(figure) {
  const answer = await fetch(figure.dataset.curves);
  if (!answer.ok) return;
  const metrics = await answer.json();
  if (metrics.length) figure.querySelector(".picture").replaceWith(element("div", "curves-grid wide-grid", ...metrics.map(chart)));
}

// what is far down is drawn when it is near
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((one) => one.isIntersecting)) {
    seen.unobserve(entry.target);
    replace(entry.target).catch(() => {});
  }
}, { rootMargin: "400px" });
const watch = () => document.querySelectorAll("figure[data-curves]").forEach((figure) => seen.observe(figure));
watch();
document.addEventListener("benchbot:replaced", watch);
