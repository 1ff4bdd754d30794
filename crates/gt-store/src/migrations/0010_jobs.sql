-- Jobs: what the clock brings, and what became of each slot. A fire is worked off as a turn. (docs/decisions/0012)

CREATE TABLE job (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  name         TEXT    NOT NULL UNIQUE,
  is_beat      INTEGER NOT NULL DEFAULT 0, -- a heartbeat, which the config makes
  kind         TEXT    NOT NULL,        -- at, every, cron
  schedule     TEXT    NOT NULL,        -- a time, microseconds, an expression
  anchor       INTEGER NOT NULL,        -- from where `every` counts
  tz           TEXT    NOT NULL,
  payload      TEXT    NOT NULL,
  missed       TEXT    NOT NULL,        -- skip, once, all
  may_overlap  INTEGER NOT NULL DEFAULT 0,
  -- What somebody set for it; NULL: as the config says.
  grace        INTEGER,                 -- microseconds
  timeout      INTEGER,                 -- microseconds
  retries      INTEGER,
  lane         TEXT,
  channel      TEXT,                    -- where its answer goes; NULL: nowhere
  recipient    TEXT,
  state        TEXT    NOT NULL,        -- active, paused, disabled
  why          TEXT,                    -- why it is disabled
  next_at      INTEGER,                 -- its next slot; NULL: it is not active, or its only one has come
  failures     INTEGER NOT NULL DEFAULT 0, -- fires in a row that failed
  made_at      INTEGER NOT NULL,
  seen_at      INTEGER NOT NULL,        -- when its slots were seen to last, by the clock of then; at first: when it was made
  peak_at      INTEGER NOT NULL,        -- the latest time at which they were
  last_at      INTEGER,                 -- the slot that something became of last
  last_status  TEXT,
  said         TEXT,                    -- what a heartbeat delivered last
  said_at      INTEGER
) STRICT;

CREATE INDEX job_next ON job (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX job_rests ON job (id) WHERE next_at IS NULL;
CREATE INDEX job_disabled ON job (name) WHERE state = 'disabled';
CREATE INDEX job_beat ON job (name) WHERE is_beat = 1;

CREATE TABLE fire (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  job          INTEGER NOT NULL,        -- job.id
  name         TEXT    NOT NULL,        -- of the job, which may be gone
  slot         INTEGER NOT NULL,
  until        INTEGER,                 -- it stands for all slots up to this one
  is_manual    INTEGER NOT NULL DEFAULT 0,
  status       TEXT    NOT NULL,        -- running, ok, failed, timeout, cancelled, missed, skipped
  attempt      INTEGER NOT NULL DEFAULT 0,
  retries      INTEGER NOT NULL DEFAULT 0, -- that it may have
  failures_max INTEGER NOT NULL DEFAULT 0, -- fires in a row that may fail; 0: any number
  made_at      INTEGER NOT NULL,
  started_at   INTEGER,
  ended_at     INTEGER,
  retry_at     INTEGER,                 -- when it is tried again
  error        TEXT,                    -- why it failed, was missed or skipped
  turn         INTEGER,                 -- turn.id of its last attempt
  run          TEXT,
  bead         TEXT,                    -- what it has made, so that another attempt does not make it again
  tokens_in    INTEGER,
  tokens_out   INTEGER,
  tokens_cached INTEGER,
  cost         REAL,
  delivery     TEXT,                    -- none, waiting, delivered, failed, suppressed, repeated, mailed
  delivery_error TEXT                   -- why it is not delivered
) STRICT;

-- A slot fires at most once, whoever runs the town. That it was missed is a record of its own, even if it runs late.
CREATE UNIQUE INDEX fire_slot ON fire (job, slot) WHERE status <> 'missed';
CREATE UNIQUE INDEX fire_missed ON fire (job, slot) WHERE status = 'missed';
CREATE INDEX fire_by_job ON fire (job, id);
CREATE INDEX fire_by_name ON fire (name, id);
CREATE INDEX fire_running ON fire (job) WHERE status = 'running';
CREATE INDEX fire_retry ON fire (retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX fire_by_turn ON fire (turn) WHERE turn IS NOT NULL;
CREATE INDEX fire_by_end ON fire (ended_at) WHERE ended_at IS NOT NULL;

ALTER TABLE turn ADD COLUMN fire INTEGER;    -- fire.id; NULL: somebody said something
ALTER TABLE turn ADD COLUMN command TEXT;    -- what is started; NULL: an agent is asked
ALTER TABLE turn ADD COLUMN timeout INTEGER; -- microseconds; NULL: as the config says
ALTER TABLE turn ADD COLUMN is_apart INTEGER NOT NULL DEFAULT 0; -- in a conversation of its own, with which nobody goes on

-- Whether an answer arrived is known to the fire that it is of, however the outbox comes to know it.
CREATE TRIGGER fire_delivery AFTER UPDATE OF state ON outbox WHEN new.key LIKE 'turn-%' AND new.state <> old.state
BEGIN
  UPDATE fire SET delivery = new.state, delivery_error = new.error WHERE turn = CAST(substr(new.key, 6) AS INTEGER)
    AND delivery = 'waiting';
END;

-- What never arrived was not said: a heartbeat may say it again.
CREATE TRIGGER beat_unsaid AFTER UPDATE OF delivery ON fire WHEN new.delivery = 'failed'
BEGIN
  UPDATE job SET said = NULL, said_at = NULL WHERE id = new.job AND is_beat = 1;
END;
