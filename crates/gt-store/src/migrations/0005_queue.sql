-- The queue: which contexts `gt queue` made, and when one of them started last. (SPEC Q1)

ALTER TABLE context ADD COLUMN queued INTEGER NOT NULL DEFAULT 0;  -- 1: where the scheduler has no cap, the queue rules it

-- What was slung is found though much is queued and has to wait.
CREATE INDEX context_slung ON context (enqueued_at, id) WHERE state = 'open' AND ready = 1 AND queued = 0;

ALTER TABLE scheduler ADD COLUMN last_queued_at INTEGER;
