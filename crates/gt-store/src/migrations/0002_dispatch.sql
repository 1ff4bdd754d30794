-- Dispatch: sling contexts, runs, polecats, attempts, and the scheduler's own state. (docs/decisions/0004)

CREATE TABLE context (
  id           TEXT    PRIMARY KEY,
  bead         INTEGER NOT NULL,        -- bead.key of the work
  rig          TEXT    NOT NULL,
  agent        TEXT,                    -- NULL: the default agent
  assignee     TEXT,                    -- the work's, when it was slung; another one holds it back
  state        TEXT    NOT NULL,        -- open, claimed, closed
  ready        INTEGER NOT NULL,        -- maintained: 0 the work is not ready, 1 it is, 2 it is done already
  priority     INTEGER NOT NULL,        -- maintained: the work's
  enqueued_at  INTEGER NOT NULL,
  fields       TEXT    NOT NULL,        -- JSON object
  failures     INTEGER NOT NULL,        -- starts that failed
  last_failure TEXT,
  retry_at     INTEGER,                 -- not tried before
  run          TEXT,                    -- that has it, or had it last
  closed_at    INTEGER,
  close_reason TEXT
) STRICT, WITHOUT ROWID;

-- At most one open or claimed context per bead.
CREATE UNIQUE INDEX context_live ON context (bead) WHERE state <> 'closed';
CREATE INDEX context_open ON context (enqueued_at, id) WHERE state = 'open';
CREATE INDEX context_queue ON context (enqueued_at, id) WHERE state = 'open' AND ready = 1;
CREATE INDEX context_urgent ON context (priority, enqueued_at, id) WHERE state = 'open' AND ready = 1;
CREATE INDEX context_stale ON context (id) WHERE state = 'open' AND ready = 2;
CREATE INDEX context_retry ON context (retry_at) WHERE state = 'open' AND retry_at IS NOT NULL;

-- The queue follows the beads, whichever verb changes them.
CREATE TRIGGER context_follows_standing AFTER UPDATE OF standing ON bead WHEN new.standing IS NOT old.standing BEGIN
  UPDATE context SET ready = CASE WHEN new.standing IS NULL THEN 2 ELSE new.standing = 'ready' END
    WHERE bead = new.key AND state <> 'closed' AND state = 'open'; -- the first of the two finds the index
END;
CREATE TRIGGER context_follows_priority AFTER UPDATE OF priority ON bead WHEN new.priority <> old.priority BEGIN
  UPDATE context SET priority = new.priority WHERE bead = new.key AND state <> 'closed' AND state = 'open';
END;

CREATE TABLE run (
  id           TEXT    PRIMARY KEY,
  bead         INTEGER NOT NULL,
  context      TEXT    NOT NULL,
  rig          TEXT    NOT NULL,
  polecat      TEXT    NOT NULL,
  agent        TEXT    NOT NULL,
  host         TEXT    NOT NULL,
  state        TEXT    NOT NULL,        -- starting, working, ended
  starter      TEXT    NOT NULL,        -- the process that starts it
  claimed_at   INTEGER NOT NULL,
  started_at   INTEGER,
  ended_at     INTEGER,
  pid          INTEGER,
  birth        INTEGER,
  session      TEXT,
  branch       TEXT,
  worktree     TEXT,
  log          TEXT,
  said         TEXT,                    -- the outcome that it reported itself
  said_at      INTEGER,
  note         TEXT,
  stop_at      INTEGER,                 -- it was told to stop, and nothing it says counts any more
  stop_by      TEXT,
  stop_outcome TEXT,
  stop_reason  TEXT,
  outcome      TEXT,
  end_reason   TEXT,
  exit_code    INTEGER,
  exit_signal  INTEGER,
  cost         REAL                     -- US dollars, as reported
) STRICT, WITHOUT ROWID;

-- At most one live run per bead.
CREATE UNIQUE INDEX run_live ON run (bead) WHERE state <> 'ended';
CREATE INDEX run_alive ON run (claimed_at, id) WHERE state <> 'ended';
CREATE INDEX run_by_claim ON run (claimed_at);
CREATE INDEX run_by_bead ON run (bead, claimed_at);
CREATE INDEX run_by_report ON run (said_at) WHERE said_at IS NOT NULL;

CREATE TABLE polecat (
  rig      TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  run      TEXT,                        -- NULL: idle
  last_run TEXT,
  bead     TEXT,                        -- id of the last work
  worktree TEXT,
  branch   TEXT,
  kept     TEXT,                        -- why it is not given new work: what is in its worktree
  since    INTEGER NOT NULL,
  PRIMARY KEY (rig, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX polecat_idle ON polecat (rig, since DESC, name) WHERE run IS NULL AND kept IS NULL;
CREATE INDEX polecat_by_run ON polecat (run) WHERE run IS NOT NULL;
CREATE INDEX polecat_by_last_run ON polecat (last_run);

-- What happened to a bead's earlier runs. Only `retry` takes the counts back.
CREATE TABLE dispatch_record (
  bead         INTEGER PRIMARY KEY,
  attempts     INTEGER NOT NULL,        -- runs that ended without finishing it
  last_failure TEXT,
  branch       TEXT,                    -- of the last unfinished run
  hold         TEXT,                    -- cleared, circuit-broken, out-of-attempts, stopped
  hold_until   INTEGER,                 -- a broken circuit lets one try through
  context      TEXT                     -- the last one, to be tried again with
) STRICT;

CREATE INDEX dispatch_hold ON dispatch_record (hold_until) WHERE hold_until IS NOT NULL;

CREATE TABLE scheduler (
  one                 INTEGER PRIMARY KEY CHECK (one = 1),
  paused_at           INTEGER,
  paused_by           TEXT,
  paused_reason       TEXT,
  last_dispatch_at    INTEGER,
  last_dispatch_count INTEGER
) STRICT;
INSERT INTO scheduler (one) VALUES (1);

-- What is nobody's fault and passes.
CREATE TABLE trouble (
  scope  TEXT    PRIMARY KEY,           -- '' the town, 'agent NAME', 'rig NAME'
  until  INTEGER NOT NULL,
  reason TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
