-- Work that is done step by step, each step in a run of its own. (docs/decisions/0007)

CREATE TABLE step (
  bead     INTEGER NOT NULL,        -- bead.key
  place    INTEGER NOT NULL,        -- 1, 2, …
  slung_at INTEGER NOT NULL,        -- context.enqueued_at of the sling that planned it; its retries keep that time
  id       TEXT    NOT NULL,
  title    TEXT    NOT NULL,
  run      TEXT,                    -- that did it
  branch   TEXT,                    -- where the next step starts from
  note     TEXT,                    -- what it tells the next one
  done_at  INTEGER,                 -- NULL: not done yet
  PRIMARY KEY (bead, place)
) STRICT, WITHOUT ROWID;
