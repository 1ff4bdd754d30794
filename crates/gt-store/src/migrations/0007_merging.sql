-- From done to merged: the refinery's queue, and what a run leaves to the next one. (docs/decisions/0009)

CREATE TABLE merge (
  id        TEXT    PRIMARY KEY,
  place     INTEGER NOT NULL,        -- in the queue
  bead      INTEGER NOT NULL,        -- bead.key of the work
  run       TEXT    NOT NULL,        -- that did it
  rig       TEXT    NOT NULL,
  target    TEXT    NOT NULL,        -- the branch that it goes to
  branch    TEXT    NOT NULL,        -- the branch that it came from
  tip       TEXT    NOT NULL,        -- the commit that was handed over
  strategy  TEXT    NOT NULL,        -- mr, direct
  state     TEXT    NOT NULL,        -- waiting, requested, merged, returned, dropped
  queued_at INTEGER NOT NULL,
  ended_at  INTEGER,
  reason    TEXT,                    -- why it was returned or dropped
  merged    TEXT,                    -- the commit that has it in the target
  landing   INTEGER NOT NULL DEFAULT 0, -- 1: its target is being moved, and nobody can decide against it any more
  request   TEXT,                    -- the pull request, as its command calls it
  rework    INTEGER,                 -- bead.key of what was made of a returned one
  patch     TEXT                     -- the file with its commits, for whoever works on it again
) STRICT, WITHOUT ROWID;

-- At most one merge per bead is under way.
CREATE UNIQUE INDEX merge_live ON merge (bead) WHERE state IN ('waiting', 'requested');
CREATE UNIQUE INDEX merge_queue ON merge (rig, target, place) WHERE state IN ('waiting', 'requested');
CREATE INDEX merge_by_place ON merge (place);
CREATE INDEX merge_by_rework ON merge (rework) WHERE rework IS NOT NULL;
CREATE INDEX merge_by_bead ON merge (bead);

-- A target that nothing is merged into for a while.
CREATE TABLE merge_hold (
  rig    TEXT    NOT NULL,
  target TEXT    NOT NULL,
  since  INTEGER NOT NULL,
  until  INTEGER NOT NULL,           -- the next try
  tries  INTEGER NOT NULL,
  reason TEXT    NOT NULL,
  PRIMARY KEY (rig, target)
) STRICT, WITHOUT ROWID;

-- Nothing is merged in this rig until somebody resumes; the empty name stands for every rig.
CREATE TABLE merge_pause (
  rig    TEXT    PRIMARY KEY,
  at     INTEGER NOT NULL,
  by     TEXT    NOT NULL,
  reason TEXT
) STRICT, WITHOUT ROWID;

ALTER TABLE dispatch_record ADD COLUMN patch TEXT;   -- what the last unfinished run had not committed
ALTER TABLE dispatch_record ADD COLUMN handoff TEXT; -- its word to the next run, which goes on from its branch
