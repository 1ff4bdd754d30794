-- What must not depend on a clock that may be set back: the tries at a step, and how long a delivery waits.

-- Runs that ended without finishing the step, and where the last of them left its work.
ALTER TABLE step ADD COLUMN tried INTEGER NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN left_branch TEXT;
UPDATE step SET
  tried = (SELECT count(*) FROM run WHERE run.bead = step.bead AND state = 'ended'
    AND outcome IN ('failed', 'died', 'timed-out')
    AND claimed_at >= (SELECT max(done_at) FROM step AS earlier WHERE earlier.bead = step.bead)),
  left_branch = (SELECT branch FROM run WHERE run.bead = step.bead AND state = 'ended' AND branch IS NOT NULL
    AND claimed_at >= (SELECT max(done_at) FROM step AS earlier WHERE earlier.bead = step.bead)
    ORDER BY claimed_at DESC LIMIT 1)
  WHERE done_at IS NULL
    AND place = (SELECT min(place) FROM step AS next WHERE next.bead = step.bead AND next.done_at IS NULL);

-- When `next_at` was set; NULL: when it was put there.
ALTER TABLE outbox ADD COLUMN tried_at INTEGER;
