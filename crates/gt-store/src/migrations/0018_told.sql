-- The alert that a heartbeat told, so that it does not tell the same again for a day. The answer in `turn` is no record of that: it
-- may have a remark at its end, and goes with the messages.
ALTER TABLE fire ADD COLUMN told TEXT;
CREATE INDEX fire_told ON fire (name, ended_at) WHERE told IS NOT NULL;
