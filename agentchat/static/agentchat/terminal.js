// The live end of a terminal: plain text, carriage returns overwrite, no colours. When the call ends the server's
// version takes its place.

const KEEP = 8000;
const ESCAPES = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]/g;

/** What a terminal shows of one raw line. */
export function shown(line) {
  const cells = [];
  let at = 0;
  for (const char of line.replace(ESCAPES, '')) {
    if (char === '\r') at = 0;
    else if (char === '\b') at = Math.max(0, at - 1);
    else if (char >= ' ' || char === '\t') cells[at++] = char;
  }
  return cells.join('');
}

export function append(term, text) {
  const pre = term.querySelector('pre[data-live]');
  if (!pre) return;
  const open = pre.querySelector('[data-line]');
  const inner = pre.scrollHeight - pre.clientHeight - pre.scrollTop < 24;
  const lines = ((open.raw ?? open.dataset.raw) + text).split('\n');
  open.raw = lines.pop();
  if (open.raw.length > KEEP) open.raw = open.raw.slice(Math.max(open.raw.lastIndexOf('\r'), open.raw.length - KEEP));
  if (lines.length) open.before(lines.slice(-KEEP).map(shown).join('\n') + '\n');
  open.textContent = shown(open.raw);
  trim(pre, open);
  if (inner) pre.scrollTop = pre.scrollHeight;
}

function trim(pre, open) {
  while (pre.textContent.length > 2 * KEEP && pre.firstChild !== open) {
    const first = pre.firstChild;
    const over = pre.textContent.length - KEEP;
    if (first.textContent.length <= over) first.remove();
    else first.textContent = first.textContent.slice(over);
  }
}
