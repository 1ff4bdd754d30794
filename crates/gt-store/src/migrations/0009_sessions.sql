-- Sessions: messages, the turns they become, and the outbox. A turn is a run like any other. (docs/decisions/0010)

-- A run of a turn has no bead, so that column may be empty now; the rest is as it was.
CREATE TABLE run_anew (
  id           TEXT    PRIMARY KEY,
  bead         INTEGER,                 -- NULL: it is a turn of a session
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
  session      TEXT,                    -- the name of its terminal
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
  cost         REAL,                    -- US dollars, as reported
  activity     TEXT,                    -- working, waiting, turn-over; NULL: it has told nothing
  waiting_for  TEXT,                    -- approval, question, auth, trust, limit
  activity_at  INTEGER,
  conversation TEXT,                    -- the agent's own name for it
  tokens_in    INTEGER,
  tokens_out   INTEGER,
  tokens_cached INTEGER,
  failure      TEXT,                    -- the class of the failure that it ended with
  cost_at      INTEGER,                 -- when its cost was last told
  last_output  TEXT,
  stalled_at   INTEGER,
  interrupted_at INTEGER,
  tip          TEXT,                    -- the commit that it had when it handed its work on
  turn         INTEGER,                 -- turn.id
  lane         TEXT,                    -- that it counts in; NULL: the scheduler's cap
  resumes      TEXT,                    -- the conversation that it goes on with
  rides        TEXT,                    -- the run whose place in a lane it has, as long as that waits for it
  is_aside     INTEGER NOT NULL DEFAULT 0 -- it runs beside another turn of its session
) STRICT, WITHOUT ROWID;
INSERT INTO run_anew
  SELECT *, NULL, NULL, NULL, NULL, 0 FROM run;
DROP TABLE run;
ALTER TABLE run_anew RENAME TO run;

-- At most one live run per bead, and per turn.
CREATE UNIQUE INDEX run_live ON run (bead) WHERE state <> 'ended';
CREATE UNIQUE INDEX run_turn_live ON run (turn) WHERE state <> 'ended';
CREATE INDEX run_alive ON run (claimed_at, id) WHERE state <> 'ended';
CREATE INDEX run_by_claim ON run (claimed_at);
CREATE INDEX run_by_bead ON run (bead, claimed_at);
CREATE INDEX run_by_turn ON run (turn, claimed_at) WHERE turn IS NOT NULL;
CREATE INDEX run_by_conversation ON run (conversation) WHERE turn IS NOT NULL;
CREATE INDEX run_by_report ON run (said_at) WHERE said_at IS NOT NULL;
CREATE INDEX run_by_cost ON run (cost_at) WHERE cost_at IS NOT NULL;
CREATE INDEX run_in_lane ON run (lane) WHERE state <> 'ended' AND lane IS NOT NULL;

CREATE TABLE session (
  id           INTEGER PRIMARY KEY,
  key          TEXT    NOT NULL UNIQUE,
  made_at      INTEGER NOT NULL,
  last_at      INTEGER NOT NULL,        -- of its last message or answer
  -- What somebody set for it; NULL: as the config says.
  agent        TEXT,
  lane         TEXT,
  mode         TEXT,
  cap          INTEGER,
  overflow     TEXT,
  debounce     INTEGER,                 -- microseconds
  channel      TEXT,                    -- where answers go
  recipient    TEXT,
  -- The agent's own conversation, with whom, and how full it is.
  conversation TEXT,
  talks_to     TEXT,
  tokens       INTEGER,
  is_crowded   INTEGER NOT NULL DEFAULT 0,
  -- Maintained: the first turn that waits, if there is room for it beside those that run.
  n_waiting    INTEGER NOT NULL DEFAULT 0,
  n_live       INTEGER NOT NULL DEFAULT 0,
  next_turn    INTEGER,
  next_lane    TEXT,
  next_at      INTEGER                  -- not started before
) STRICT;

CREATE INDEX session_next ON session (next_lane, next_turn) WHERE next_turn IS NOT NULL;
CREATE INDEX session_next_at ON session (next_at) WHERE next_turn IS NOT NULL;
CREATE INDEX session_by_use ON session (last_at);

CREATE TABLE turn (
  id           INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order in which they start
  session      INTEGER NOT NULL,        -- session.id
  origin       TEXT    NOT NULL,        -- what its messages have in common
  text         TEXT    NOT NULL,
  n_messages   INTEGER NOT NULL DEFAULT 1,
  agent        TEXT,
  lane         TEXT    NOT NULL,
  channel      TEXT,                    -- where its answer goes; NULL: whoever asked comes for it
  recipient    TEXT,
  reply_to     TEXT,
  parent       TEXT,                    -- the run that waits for its answer
  state        TEXT    NOT NULL,        -- waiting, live, ended
  made_at      INTEGER NOT NULL,
  due_at       INTEGER NOT NULL,        -- more messages may come until then; later: it is tried again
  failures     INTEGER NOT NULL DEFAULT 0, -- starts that failed
  attempts     INTEGER NOT NULL DEFAULT 0, -- runs that were interrupted
  run          TEXT,                    -- its last run
  ended_at     INTEGER,
  outcome      TEXT,                    -- done, failed, cancelled, dropped
  reply        TEXT,
  error        TEXT                     -- why it has no answer, or is not started
) STRICT;

CREATE INDEX turn_waiting ON turn (session, id) WHERE state = 'waiting';
CREATE INDEX turn_live ON turn (session, id) WHERE state = 'live';
CREATE INDEX turn_awaited ON turn (parent) WHERE parent IS NOT NULL AND state <> 'ended';
CREATE INDEX turn_by_session ON turn (session, id);
CREATE INDEX turn_by_end ON turn (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE message (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  turn     INTEGER,                     -- NULL: there was no room for it, or it was a command
  sender   TEXT    NOT NULL,
  channel  TEXT    NOT NULL,            -- that it came by
  source   TEXT,                        -- its name there: what comes twice is taken once
  text     TEXT    NOT NULL,
  at       INTEGER NOT NULL,
  answer   TEXT                         -- what was said to a command
) STRICT;

CREATE UNIQUE INDEX message_source ON message (channel, source) WHERE source IS NOT NULL;
CREATE INDEX message_by_turn ON message (turn);
CREATE INDEX message_by_time ON message (at);

-- What is to be delivered, each under a name that stays the same however often that is tried.
CREATE TABLE outbox (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  key        TEXT    NOT NULL UNIQUE,
  channel    TEXT    NOT NULL,
  recipient  TEXT,
  reply_to   TEXT,
  session    TEXT    NOT NULL,
  run        TEXT,
  outcome    TEXT    NOT NULL,
  text       TEXT    NOT NULL,          -- empty: only that it is over
  sent_parts INTEGER NOT NULL DEFAULT 0,
  made_at    INTEGER NOT NULL,
  state      TEXT    NOT NULL,          -- waiting, delivered, failed
  tries      INTEGER NOT NULL DEFAULT 0,
  next_at    INTEGER NOT NULL,
  error      TEXT,
  done_at    INTEGER
) STRICT;

CREATE INDEX outbox_waiting ON outbox (next_at) WHERE state = 'waiting';
CREATE INDEX outbox_order ON outbox (channel, recipient, id) WHERE state = 'waiting';
CREATE INDEX outbox_done ON outbox (done_at) WHERE done_at IS NOT NULL;

-- How far a channel has read what it is given.
CREATE TABLE channel_mark (
  channel TEXT PRIMARY KEY,
  mark    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
