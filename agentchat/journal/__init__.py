"""The journal: what happened in each chat, numbered without gaps, written in groups, replayed to whoever asks."""
