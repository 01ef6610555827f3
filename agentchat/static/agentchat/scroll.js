// Sticks to the end while the reader is there, never moves the page under them otherwise, and keeps thumbs from
// deciding on a card that has just appeared or moved.

const NEAR = 48, MOVED = 8, INERT = 500;
const root = document.documentElement;
const pill = () => document.querySelector('.pill');
let stuck = true, news = 0;

const distance = () => root.scrollHeight - innerHeight - scrollY;

export function toEnd() {
  scrollTo(0, root.scrollHeight);
  stuck = true;
  look();
}

function look() {
  const button = pill();
  if (!button) return;
  stuck = distance() < NEAR;
  if (stuck) news = 0;
  button.hidden = stuck;
  const card = document.querySelector('.card[data-state="pending"]');
  button.classList.toggle('go', Boolean(card && news));
  button.querySelector('[data-words]').textContent = card && news ? 'A request waits below' : news ? 'New below' : 'To the end';
}

/** Change the page; it stays at the end if it was there. */
export function changing(change) {
  const wasStuck = stuck && distance() < NEAR * 4;
  const tops = new Map([...pendingCards()].map((card) => [card.dataset.card, card.getBoundingClientRect().top]));
  change();
  if (wasStuck) scrollTo(0, root.scrollHeight); else news += 1;
  for (const card of pendingCards()) {
    const before = tops.get(card.dataset.card);
    if (before === undefined || Math.abs(card.getBoundingClientRect().top - before) > MOVED) hold(card);
  }
  look();
}

const pendingCards = () => document.querySelectorAll('.card[data-state="pending"]');

/** For half a second the buttons of a scope do nothing; its cards have been shown from now on. */
export function hold(scope) {
  for (const card of scope.matches('.card') ? [scope] : scope.querySelectorAll('.card')) card.shownAt ??= new Date();
  for (const row of scope.querySelectorAll('.choices')) {
    row.dataset.inert = '';
    clearTimeout(row.inertTimer);
    row.inertTimer = setTimeout(() => delete row.dataset.inert, INERT);
  }
}

export function start() {
  document.addEventListener('click', (e) => {
    if (!e.target.closest('[data-inert]') && !(document.body.dataset.offline && e.target.closest('.stub'))) return;
    e.preventDefault();
    e.stopImmediatePropagation();
  }, true);
  if (!pill()) return;
  if (!location.hash) toEnd(); else stuck = false;
  addEventListener('scroll', look, { passive: true });
  addEventListener('resize', () => { if (stuck) toEnd(); });
  pill().addEventListener('click', () => {
    const card = document.querySelector('.card[data-state="pending"]');
    if (card && news) card.scrollIntoView({ block: 'center' }); else toEnd();
  });
  look();
}
