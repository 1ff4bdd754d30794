-- Convoys that feed and land by themselves, mail, notices, recovery. (docs/decisions/0008)

-- Members of convoys that the next pass looks at: they became ready, or their convoy opened.
CREATE TABLE to_feed (
  bead INTEGER PRIMARY KEY
) STRICT;

-- Convoys that are looked at before the transaction ends, because one of their members left them or is done.
CREATE TABLE to_land (
  convoy INTEGER PRIMARY KEY
) STRICT;

-- A member that was not done when its convoy was looked at last: as long as it is not, nobody has to look at the others.
CREATE TABLE laggard (
  convoy INTEGER PRIMARY KEY,
  member TEXT    NOT NULL
) STRICT;

-- Whichever verb changes a bead, its convoys follow.
CREATE TRIGGER feed_follows_standing AFTER UPDATE OF standing ON bead
WHEN new.standing = 'ready' AND old.standing IS NOT 'ready' BEGIN
  INSERT OR IGNORE INTO to_feed SELECT new.key WHERE EXISTS
    (SELECT 1 FROM edge WHERE target = new.id AND type = 'tracks');
END;
CREATE TRIGGER landing_follows_standing AFTER UPDATE OF standing ON bead
WHEN new.standing IS NULL AND old.standing IS NOT NULL BEGIN
  INSERT OR IGNORE INTO to_land SELECT source FROM edge WHERE target = new.id AND type = 'tracks';
END;
CREATE TRIGGER feed_follows_convoy AFTER UPDATE OF status ON bead
WHEN new.issue_type = 'convoy' AND new.status = 'open' AND old.status <> 'open' BEGIN
  INSERT OR IGNORE INTO to_feed SELECT member.key FROM edge JOIN bead AS member ON member.id = edge.target
    WHERE edge.source = new.key AND edge.type = 'tracks' AND member.standing = 'ready';
  INSERT OR IGNORE INTO to_land VALUES (new.key);
END;
CREATE TRIGGER landing_follows_edges AFTER DELETE ON edge WHEN old.type = 'tracks' BEGIN
  INSERT OR IGNORE INTO to_land VALUES (old.source);
END;

CREATE INDEX bead_convoys ON bead (key) WHERE issue_type = 'convoy' AND standing IS NOT NULL;

-- When a convoy was fed last by the deacon.
CREATE TABLE feeding (
  convoy INTEGER PRIMARY KEY,
  fed_at INTEGER NOT NULL
) STRICT;

-- A number is never given twice: people and hooks remember it.
CREATE TABLE mail (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  recipient TEXT    NOT NULL,
  sender    TEXT    NOT NULL,
  subject   TEXT    NOT NULL,
  body      TEXT    NOT NULL,
  bead      TEXT,
  run       TEXT,
  sent_at   INTEGER NOT NULL,
  read_at   INTEGER
) STRICT;

CREATE INDEX mail_by_recipient ON mail (recipient, id);
CREATE INDEX mail_unread ON mail (recipient, id) WHERE read_at IS NULL;

-- What somebody outside is to be told; one row until everybody was told, or nobody can be.
CREATE TABLE notice (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  kind    TEXT    NOT NULL,             -- an event's word, such as convoy.landed
  bead    TEXT,
  text    TEXT    NOT NULL,             -- one line for a person
  data    TEXT    NOT NULL,             -- JSON object
  at      INTEGER NOT NULL,
  told    TEXT    NOT NULL,             -- JSON list of those who were told
  tries   INTEGER NOT NULL,
  next_at INTEGER,                      -- not tried before; NULL: settled
  error   TEXT
) STRICT;

CREATE INDEX notice_due ON notice (next_at) WHERE next_at IS NOT NULL;

-- What a run printed last, and how far its stall has been answered.
ALTER TABLE run ADD COLUMN last_output TEXT;
ALTER TABLE run ADD COLUMN stalled_at INTEGER;
ALTER TABLE run ADD COLUMN interrupted_at INTEGER;

-- What is on somebody's hook, and since when.
CREATE INDEX bead_on_hook ON bead (updated_at) WHERE status IN ('hooked', 'in_progress');
