"""Private PostgreSQL, Redis, server and browser for tests. Each stops what it started, by its own id."""
