// What charts are made of. A chart is an SVG of fixed size that is stretched to its place.
export const WIDTH = 300;
export const HEIGHT = 100;
const SVG = "http://www.w3.org/2000/svg";

export function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export const number = (value) =>
  value === null || value === undefined ? "–" : String(Number(value.toPrecision(4)));

// steps are counted, so all their digits matter
export const whole = (step) => (step === null || step === undefined ? "–" : String(Math.round(step * 100) / 100));

// a scale from what is measured to the SVG; what does not vary lies in the middle
export function scale(values, from, to, logarithmic = false) {
  const bend = logarithmic ? Math.log10 : (value) => value;
  const low = bend(Math.min(...values)), high = bend(Math.max(...values));
  return (value) => (high === low ? (from + to) / 2 : from + ((bend(value) - low) / (high - low)) * (to - from));
}

// what is not a number leaves a gap
export function path(points, x, y) {
  let drawing = "", pen = "M";
  for (const [step, value] of points) {
    if (value === null) { pen = "M"; continue; }
    drawing += `${pen}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  }
  return drawing;
}
