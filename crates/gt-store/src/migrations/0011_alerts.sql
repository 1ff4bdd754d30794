-- What never arrived was not said: a heartbeat may say it again. What it has said since is another thing.
DROP TRIGGER beat_unsaid;
CREATE TRIGGER beat_unsaid AFTER UPDATE OF delivery ON fire WHEN new.delivery = 'failed'
BEGIN
  UPDATE job SET said = NULL, said_at = NULL WHERE id = new.job AND is_beat = 1
    AND said = (SELECT text FROM outbox WHERE key = 'turn-' || new.turn);
END;
