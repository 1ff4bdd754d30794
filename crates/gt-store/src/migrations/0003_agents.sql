-- What agents tell of their runs. (docs/decisions/0006)

ALTER TABLE run ADD COLUMN activity TEXT;            -- working, waiting, turn-over; NULL: it has told nothing
ALTER TABLE run ADD COLUMN waiting_for TEXT;         -- approval, question, auth, trust, limit
ALTER TABLE run ADD COLUMN activity_at INTEGER;
ALTER TABLE run ADD COLUMN conversation TEXT;        -- the agent's own name for it
ALTER TABLE run ADD COLUMN tokens_in INTEGER;
ALTER TABLE run ADD COLUMN tokens_out INTEGER;
ALTER TABLE run ADD COLUMN tokens_cached INTEGER;
ALTER TABLE run ADD COLUMN failure TEXT;             -- the class of the failure that it ended with
ALTER TABLE run ADD COLUMN cost_at INTEGER;          -- when its cost was last told

UPDATE run SET cost_at = said_at WHERE cost IS NOT NULL;
CREATE INDEX run_by_cost ON run (cost_at) WHERE cost_at IS NOT NULL;
