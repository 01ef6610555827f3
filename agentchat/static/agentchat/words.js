// What is said to people who do not look: one polite line, at most one every few seconds; and the page's title.

const PAUSE = 5000;
const MOST = 3;
let waiting = [], last = 0, timer;

export function say(text) {
  waiting = [...waiting.filter((one) => one !== text), text].slice(-MOST);
  clearTimeout(timer);
  timer = setTimeout(speak, Math.max(0, last + PAUSE - Date.now()));
}

function speak() {
  last = Date.now();
  const region = document.getElementById('says');
  if (region) region.textContent = waiting.join('. ');
  waiting = [];
}

/** For what cannot wait. */
export function alarm(text) {
  const region = document.getElementById('alerts');
  if (region && region.textContent !== text) region.textContent = text;
}

export function count(pending) {
  for (const badge of document.querySelectorAll('[data-pending]')) {
    badge.hidden = !pending;
    badge.querySelector('[data-number]').textContent = pending;
  }
  document.title = (pending ? `(${pending}) ` : '') + document.title.replace(/^\(\d+\) /, '');
}

/** How many code points a string has: what offsets count. */
export function codePoints(text) {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

export function dropCodePoints(text, n) {
  return n <= 0 ? text : [...text].slice(n).join('');
}
