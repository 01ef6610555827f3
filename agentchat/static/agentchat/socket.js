// A socket that only listens, and comes back by itself.

const LONGEST = 10000;

/** `path()` is asked at every connection; `frame` gets each parsed frame; `state` gets 'open', 'lost' or 'over'. */
export function listen(path, frame, state = () => {}) {
  let socket, timer, tries = 0;

  function connect() {
    clearTimeout(timer);
    if (socket && socket.readyState < 2) return;
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
    socket = new WebSocket(`${scheme}//${location.host}${path()}`);
    socket.onmessage = (e) => { tries = 0; state('open'); frame(JSON.parse(e.data)); };
    socket.onopen = () => state('open');
    socket.onclose = (e) => closed(e.code);
  }

  function closed(code) {
    if (code === 4401) return location.reload();
    if (code === 4404) return state('over');
    state('lost');
    clearTimeout(timer);
    timer = setTimeout(connect, Math.min(LONGEST, 300 * 2 ** tries++) * (0.5 + Math.random() / 2));
  }

  function drop() {
    if (!socket) return;
    socket.onclose = socket.onmessage = null;
    socket.close();
    socket = null;
    state('lost');
  }

  addEventListener('offline', drop);
  addEventListener('online', () => { tries = 0; connect(); });
  addEventListener('pageshow', (e) => { if (e.persisted) connect(); });
  connect();
  return { again: () => { drop(); tries = 0; connect(); } };
}
