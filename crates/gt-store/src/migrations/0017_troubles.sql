-- How often in a row a start was in vain, or something that it needs was missing: the next try comes later each time.
-- 0: the trouble has a time of its own, as a rate limit has. A scope may also be 'program AGENT'.
ALTER TABLE trouble ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
