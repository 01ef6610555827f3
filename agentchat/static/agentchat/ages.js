// How long things last, counted on. The server says how long it was when it drew them: the clock here may be wrong.

const LATE = 900;

const pad = (number) => String(number).padStart(2, '0');

export function clock(seconds) {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return hours ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}

export function age(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

/** Seconds since the beginning; the element is first seen at most a second after it was put in. */
function lasted(element, said) {
  element.seenAt ??= performance.now();
  return Number(said) + Math.floor((performance.now() - element.seenAt) / 1000);
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tick() {
  for (const one of document.querySelectorAll('[data-clock]')) write(one, clock(lasted(one, one.dataset.clock)));
  for (const one of document.querySelectorAll('[data-age]')) {
    const seconds = lasted(one, one.dataset.age);
    write(one, age(seconds));
    one.classList.toggle('late', seconds > LATE);
    one.classList.toggle('quiet', seconds <= LATE && one.classList.contains('num'));
  }
}

export function start() {
  tick();
  setInterval(tick, 1000);
}
