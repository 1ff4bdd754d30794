-- Which config is the last good one, for commands and daemons that find a broken `town.toml`. Its text, which may hold
-- secrets, is in a file beside the store.
CREATE TABLE config_kept (
    id              INTEGER PRIMARY KEY CHECK (id = 1),
    version         INTEGER NOT NULL, -- grows with each config that is kept
    digest          TEXT NOT NULL, -- of the text
    kept_at         INTEGER NOT NULL,
    -- An edit that must stay unchanged for a while before it counts: what it says, when its file changed, when it was seen first.
    seen_digest     TEXT,
    seen_changed_at INTEGER,
    seen_at         INTEGER
) STRICT;

-- Gates and caps that were dropped, for `gt status`.
CREATE TABLE config_dropped (
    key TEXT PRIMARY KEY,
    was TEXT NOT NULL,
    via TEXT NOT NULL CHECK (via IN ('file', 'command')),
    at  INTEGER NOT NULL
) STRICT;
