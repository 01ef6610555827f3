// The inbox: the list follows what happens; the open card stays while somebody works on it.

import { fragment } from './api.js';
import { inStep } from './card.js';
import { hold } from './scroll.js';

const box = document.querySelector('[data-inbox]');
const inbox = () => box.querySelector('.inbox');
let opened = new URLSearchParams(location.search).get('open') ?? '';
let asked = 0, drawnLast = 0;

export async function refresh(keepCard = true) {
  const mine = ++asked;
  const drawn = await fragment(`/approvals/list/?open=${opened}`).catch(() => null);
  if (!drawn || mine < drawnLast) return; // a later answer was faster
  drawnLast = mine;
  const card = box.querySelector('.peek .piece');
  const view = inbox()?.dataset.view;
  const again = card && drawn.querySelector(`.peek [data-item="${card.dataset.item}"] .card`);
  const same = again?.dataset.state === card?.querySelector('.card')?.dataset.state;
  const focused = document.activeElement?.closest('.item .q')?.dataset.openCard;
  if (keepCard && card && same) box.querySelector('.inbox-list').replaceWith(drawn.querySelector('.inbox-list'));
  else box.replaceChildren(drawn); // moving the open card would take the focus from it
  if (inbox() && view) inbox().dataset.view = view;
  if (focused) box.querySelector(`[data-open-card="${focused}"]`)?.focus();
}

async function open(id) {
  opened = id;
  history.replaceState(null, '', `?open=${id}`);
  await refresh(false);
  inbox().dataset.view = 'peek';
  hold(box.querySelector('.peek'));
  (box.querySelector('.peek h2') ?? box.querySelector('.peek .card'))?.focus();
}

/** After a decision the receipt stays in sight, and the focus goes to the next that waits. */
export function decided(old, drawn) {
  old.replaceWith(drawn);
  opened = drawn.dataset.item;
  refresh().then(() => (box.querySelector('.item:not([data-settled]) .q') ?? drawn.querySelector('.card'))?.focus());
}

function back() {
  inbox().dataset.view = 'list';
  box.querySelector('.item[data-open] .q')?.focus();
}

export function start() {
  box.addEventListener('click', (e) => {
    const row = e.target.closest('[data-open-card]');
    const leave = e.target.closest('[data-back]');
    if (!row && !leave) return;
    e.preventDefault();
    if (row) open(row.dataset.openCard); else back();
  });
  box.addEventListener('keydown', (e) => {
    if (e.target.closest('textarea, input, select')) return;
    const card = e.target.closest('.card');
    const rows = [...box.querySelectorAll('.item .q')];
    const at = rows.indexOf(document.activeElement);
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      rows[Math.max(0, Math.min(rows.length - 1, at + (e.key === 'ArrowDown' ? 1 : -1)))]?.focus();
    } else if (e.key === 'Escape' && !(card && inStep(card))) back();
  });
}
