// What runs on every page of a signed-in person; the chat and the inbox bring their own parts.

import * as ages from './ages.js';
import { fragment } from './api.js';
import * as card from './card.js';
import * as composer from './composer.js';
import * as inbox from './inbox.js';
import * as scroll from './scroll.js';
import { listen } from './socket.js';
import * as transcript from './transcript.js';
import { alarm, count } from './words.js';

const chat = document.body.dataset.chat;
const onInbox = document.querySelector('[data-inbox]');
const sideList = document.getElementById('side-list');
const YEAR = 365 * 86400;

document.addEventListener('click', (e) => {
  const button = e.target.closest('[data-theme-set]');
  if (!button) return;
  const choice = button.dataset.themeSet;
  if (choice === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  document.cookie = `theme=${choice}; path=/; max-age=${choice === 'auto' ? 0 : YEAR}; samesite=lax`;
  for (const one of document.querySelectorAll('[data-theme-set]')) one.setAttribute('aria-pressed', String(one.dataset.themeSet === choice));
});

ages.start();
scroll.start();

let looking = false, again = false;
async function lookAtSide() {
  if (looking) { again = true; return; }
  looking = true;
  const query = new URLSearchParams({ current: sideList.dataset.current ?? '', q: new URLSearchParams(location.search).get('q') ?? '' });
  const drawn = await fragment(`/side/?${query}`).catch(() => null);
  if (drawn) sideList.replaceChildren(drawn);
  looking = false;
  if (again) { again = false; lookAtSide(); }
}

function startChat() {
  card.start((old, drawn) => scroll.changing(() => transcript.swap(old, drawn)));
  composer.start(chat);
  transcript.lookAtPlace();
  const banner = document.getElementById('offline');
  let timer;
  const socket = listen(() => `/ws/chats/${chat}/?condense=1&after=${transcript.at()}`, transcript.take, (state) => {
    clearTimeout(timer);
    if (state === 'over') location.assign('/');
    if (state === 'open') { banner.hidden = true; delete document.body.dataset.offline; alarm(''); }
    if (state === 'lost') timer = setTimeout(lost, 1000);
  });
  function lost() {
    banner.hidden = false;
    document.body.dataset.offline = '1';
    alarm('Not connected. The agent goes on without this page.');
  }
  banner.querySelector('[data-reconnect]').addEventListener('click', () => socket.again());
}

function startInbox() {
  inbox.start();
  card.start(inbox.decided);
}

if (sideList) {
  if (onInbox) startInbox();
  if (chat) startChat();
  listen(() => '/ws/inbox/', (frame) => { // the first one too: the page may be older than the connection
    count(frame.pending);
    lookAtSide();
    if (onInbox) inbox.refresh();
  });
}
