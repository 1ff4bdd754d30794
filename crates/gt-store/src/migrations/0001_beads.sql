-- Beads, their edges, the event log and the rigs of a town.

CREATE TABLE bead (
  key              INTEGER PRIMARY KEY,
  id               TEXT    NOT NULL UNIQUE,
  title            TEXT    NOT NULL,
  status           TEXT    NOT NULL,
  priority         INTEGER NOT NULL,
  issue_type       TEXT,
  assignee         TEXT,
  rig              TEXT,                -- a binding; NULL: by prefix
  created_at       INTEGER,             -- all times: microseconds since 1970, UTC
  updated_at       INTEGER,
  closed_at        INTEGER,
  defer_until      INTEGER,
  -- facts that readiness needs, read off the body when it is written
  pinned           INTEGER NOT NULL,
  wisp             INTEGER NOT NULL,
  merged           INTEGER NOT NULL,
  -- maintained: what follows from the neighbours (docs/decisions/0002)
  children_total   INTEGER NOT NULL,
  children_active  INTEGER NOT NULL,
  children_closed  INTEGER NOT NULL,
  children_deleted INTEGER NOT NULL,
  holding          INTEGER NOT NULL,
  blocked_parents  INTEGER NOT NULL,
  wake_at          INTEGER,
  standing         TEXT                 -- ready, deferred, blocked, held; NULL: done
) STRICT;

CREATE INDEX bead_by_standing ON bead (standing, priority, created_at, key) WHERE standing IS NOT NULL;
CREATE INDEX bead_by_wake ON bead (wake_at) WHERE standing = 'deferred';
CREATE INDEX bead_by_assignee ON bead (assignee) WHERE assignee IS NOT NULL;

-- Every other field of a bead, as one JSON object. Apart, so that counting stays on narrow rows.
CREATE TABLE bead_body (
  bead INTEGER PRIMARY KEY,
  body TEXT NOT NULL
) STRICT;

CREATE TABLE edge (
  source INTEGER NOT NULL,              -- bead.key
  target TEXT    NOT NULL,              -- a bead's id; it may not exist
  type   TEXT    NOT NULL,
  extra  TEXT    NOT NULL,              -- JSON object
  PRIMARY KEY (source, target, type)
) STRICT, WITHOUT ROWID;

CREATE INDEX edge_by_target ON edge (target, type);

CREATE TABLE label (
  bead  INTEGER NOT NULL,
  place INTEGER NOT NULL,               -- labels keep their order
  label TEXT    NOT NULL,
  PRIMARY KEY (bead, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX label_by_label ON label (label);

CREATE TABLE comment (
  key  INTEGER PRIMARY KEY,
  bead INTEGER NOT NULL,
  body TEXT    NOT NULL                 -- JSON object
) STRICT;

CREATE INDEX comment_by_bead ON comment (bead);

CREATE TABLE event (
  seq   INTEGER PRIMARY KEY,            -- the newest is never pruned, so no number comes twice
  ts    INTEGER NOT NULL,
  type  TEXT    NOT NULL,
  actor TEXT    NOT NULL,
  bead  TEXT,
  run   TEXT,
  data  TEXT    NOT NULL                -- JSON object
) STRICT;

-- How far each durable reader of the log has come: nothing it has not read is pruned.
CREATE TABLE event_reader (
  name TEXT    PRIMARY KEY,
  seq  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE rig (
  name   TEXT PRIMARY KEY,
  prefix TEXT NOT NULL UNIQUE,
  path   TEXT NOT NULL,
  url    TEXT,
  branch TEXT NOT NULL,
  state  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
