-- The attempts at a fire, each a turn, are found by it; and who was told something last, however much the clock has brought.
ALTER TABLE turn ADD COLUMN attempt INTEGER; -- which attempt at its fire it is
CREATE INDEX turn_by_fire ON turn (fire) WHERE fire IS NOT NULL;
CREATE INDEX turn_to_somebody ON turn (id) WHERE channel IS NOT NULL AND fire IS NULL;

-- An alert that cannot be delivered is a letter, and was told.
DROP TRIGGER beat_unsaid;
