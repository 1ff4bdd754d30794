-- A town of 0.1.0, made by make.sh beside this: two agents at work, a queue, a session, jobs and a held merge.
BEGIN TRANSACTION;
CREATE TABLE bead (
  key              INTEGER PRIMARY KEY,
  id               TEXT    NOT NULL UNIQUE,
  title            TEXT    NOT NULL,
  status           TEXT    NOT NULL,
  priority         INTEGER NOT NULL,
  issue_type       TEXT,
  assignee         TEXT,
  rig              TEXT,                -- a binding; NULL: by prefix
  created_at       INTEGER,             -- all times: microseconds since 1970, UTC
  updated_at       INTEGER,
  closed_at        INTEGER,
  defer_until      INTEGER,
  -- facts that readiness needs, read off the body when it is written
  pinned           INTEGER NOT NULL,
  wisp             INTEGER NOT NULL,
  merged           INTEGER NOT NULL,
  -- maintained: what follows from the neighbours (docs/decisions/0002)
  children_total   INTEGER NOT NULL,
  children_active  INTEGER NOT NULL,
  children_closed  INTEGER NOT NULL,
  children_deleted INTEGER NOT NULL,
  holding          INTEGER NOT NULL,
  blocked_parents  INTEGER NOT NULL,
  wake_at          INTEGER,
  standing         TEXT                 -- ready, deferred, blocked, held; NULL: done
) STRICT;
INSERT INTO "bead" VALUES(1,'sh-1','One','in_progress',2,NULL,'shop/polecats/Toast',NULL,NULL,1795017417982840,NULL,NULL,0,0,0,0,0,0,0,0,0,NULL,'held');
INSERT INTO "bead" VALUES(2,'sh-2','Two','in_progress',2,NULL,'shop/polecats/Ember',NULL,NULL,1795017417982840,NULL,NULL,0,0,0,0,0,0,0,0,0,NULL,'held');
INSERT INTO "bead" VALUES(3,'sh-3','Queued','open',2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,0,0,0,0,0,0,NULL,'ready');
INSERT INTO "bead" VALUES(4,'sh-4','Blocked','open',2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,0,0,0,0,1,0,NULL,'blocked');
INSERT INTO "bead" VALUES(5,'si-dirty','Held','in_progress',2,NULL,'site/refinery',NULL,NULL,1795017417678998,NULL,NULL,0,0,0,0,0,0,0,0,0,NULL,'held');
INSERT INTO "bead" VALUES(6,'hq-cv-awj5','Work: Held','open',2,'convoy',NULL,NULL,1795017417552493,1795017417552493,NULL,NULL,0,0,0,0,0,0,0,0,0,NULL,'held');
INSERT INTO "bead" VALUES(7,'hq-cv-ks68','Work: One and 3 more','open',2,'convoy',NULL,NULL,1795017417841254,1795017417841254,NULL,NULL,0,0,0,0,0,0,0,0,0,NULL,'held');
CREATE TABLE bead_body (
  bead INTEGER PRIMARY KEY,
  body TEXT NOT NULL
) STRICT;
INSERT INTO "bead_body" VALUES(1,'{"started_at":"2026-11-18T15:56:57.98284Z"}');
INSERT INTO "bead_body" VALUES(2,'{"started_at":"2026-11-18T15:56:57.98284Z"}');
INSERT INTO "bead_body" VALUES(3,'{}');
INSERT INTO "bead_body" VALUES(4,'{}');
INSERT INTO "bead_body" VALUES(5,'{"started_at":"2026-11-18T15:56:57.685162Z"}');
INSERT INTO "bead_body" VALUES(6,'{"created_by":"ada"}');
INSERT INTO "bead_body" VALUES(7,'{"created_by":"ada"}');
CREATE TABLE channel_mark (
  channel TEXT PRIMARY KEY,
  mark    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE comment (
  key  INTEGER PRIMARY KEY,
  bead INTEGER NOT NULL,
  body TEXT    NOT NULL                 -- JSON object
) STRICT;
CREATE TABLE context (
  id           TEXT    PRIMARY KEY,
  bead         INTEGER NOT NULL,        -- bead.key of the work
  rig          TEXT    NOT NULL,
  agent        TEXT,                    -- NULL: the default agent
  assignee     TEXT,                    -- the work's, when it was slung; another one holds it back
  state        TEXT    NOT NULL,        -- open, claimed, closed
  ready        INTEGER NOT NULL,        -- maintained: 0 the work is not ready, 1 it is, 2 it is done already
  priority     INTEGER NOT NULL,        -- maintained: the work's
  enqueued_at  INTEGER NOT NULL,
  fields       TEXT    NOT NULL,        -- JSON object
  failures     INTEGER NOT NULL,        -- starts that failed
  last_failure TEXT,
  retry_at     INTEGER,                 -- not tried before
  run          TEXT,                    -- that has it, or had it last
  closed_at    INTEGER,
  close_reason TEXT
, queued INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
INSERT INTO "context" VALUES('sh-wisp-4qfdk',3,'shop',NULL,NULL,'open',1,2,1795017417841256,'{"version":1,"work_bead_id":"sh-3","target_rig":"shop","formula":"mol-polecat-work","enqueued_at":"2026-11-18T15:56:57.841256Z","convoy":"hq-cv-ks68"}',0,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "context" VALUES('sh-wisp-8qzmj',2,'shop',NULL,NULL,'closed',0,2,1795017417841255,'{"version":1,"work_bead_id":"sh-2","target_rig":"shop","formula":"mol-polecat-work","enqueued_at":"2026-11-18T15:56:57.841255Z","convoy":"hq-cv-ks68"}',0,NULL,NULL,'01a1ef60-2484-7582-b0ec-0bc201d5e08c',1795017417982840,'dispatched',0);
INSERT INTO "context" VALUES('sh-wisp-a35u4',4,'shop',NULL,NULL,'open',0,2,1795017417841257,'{"version":1,"work_bead_id":"sh-4","target_rig":"shop","formula":"mol-polecat-work","enqueued_at":"2026-11-18T15:56:57.841257Z","convoy":"hq-cv-ks68"}',0,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "context" VALUES('sh-wisp-kr7nc',1,'shop',NULL,NULL,'closed',0,2,1795017417841254,'{"version":1,"work_bead_id":"sh-1","target_rig":"shop","formula":"mol-polecat-work","enqueued_at":"2026-11-18T15:56:57.841254Z","convoy":"hq-cv-ks68"}',0,NULL,NULL,'01a1ef60-2484-7582-b0ec-0bc15cae3908',1795017417982840,'dispatched',0);
INSERT INTO "context" VALUES('si-wisp-vflxh',5,'site',NULL,NULL,'closed',0,2,1795017417552493,'{"version":1,"work_bead_id":"si-dirty","target_rig":"site","formula":"mol-polecat-work","enqueued_at":"2026-11-18T15:56:57.552493Z","convoy":"hq-cv-awj5"}',0,NULL,NULL,'01a1ef60-2358-76a9-874e-c7b8b026d182',1795017417685162,'dispatched',0);
CREATE TABLE dispatch_record (
  bead         INTEGER PRIMARY KEY,
  attempts     INTEGER NOT NULL,        -- runs that ended without finishing it
  last_failure TEXT,
  branch       TEXT,                    -- of the last unfinished run
  hold         TEXT,                    -- cleared, circuit-broken, out-of-attempts, stopped
  hold_until   INTEGER,                 -- a broken circuit lets one try through
  context      TEXT                     -- the last one, to be tried again with
, patch TEXT, handoff TEXT) STRICT;
CREATE TABLE edge (
  source INTEGER NOT NULL,              -- bead.key
  target TEXT    NOT NULL,              -- a bead's id; it may not exist
  type   TEXT    NOT NULL,
  extra  TEXT    NOT NULL,              -- JSON object
  PRIMARY KEY (source, target, type)
) STRICT, WITHOUT ROWID;
INSERT INTO "edge" VALUES(4,'sh-3','blocks','{}');
INSERT INTO "edge" VALUES(6,'si-dirty','tracks','{"created_at":"2026-11-18T15:56:57.552493Z","created_by":"ada"}');
INSERT INTO "edge" VALUES(7,'sh-1','tracks','{"created_at":"2026-11-18T15:56:57.841254Z","created_by":"ada"}');
INSERT INTO "edge" VALUES(7,'sh-2','tracks','{"created_at":"2026-11-18T15:56:57.841254Z","created_by":"ada"}');
INSERT INTO "edge" VALUES(7,'sh-3','tracks','{"created_at":"2026-11-18T15:56:57.841254Z","created_by":"ada"}');
INSERT INTO "edge" VALUES(7,'sh-4','tracks','{"created_at":"2026-11-18T15:56:57.841254Z","created_by":"ada"}');
CREATE TABLE event (
  seq   INTEGER PRIMARY KEY,            -- the newest is never pruned, so no number comes twice
  ts    INTEGER NOT NULL,
  type  TEXT    NOT NULL,
  actor TEXT    NOT NULL,
  bead  TEXT,
  run   TEXT,
  data  TEXT    NOT NULL                -- JSON object
) STRICT;
INSERT INTO "event" VALUES(1,1795017416914187,'town.created','ada',NULL,NULL,'{}');
INSERT INTO "event" VALUES(2,1795017417031837,'rig.added','ada',NULL,NULL,'{"path":"[HOME]/shop","prefix":"sh","rig":"shop"}');
INSERT INTO "event" VALUES(3,1795017417052018,'rig.added','ada',NULL,NULL,'{"path":"[HOME]/site","prefix":"si","rig":"site"}');
INSERT INTO "event" VALUES(4,1795017417087624,'config.changed','ada',NULL,NULL,'{"key":"runtime"}');
INSERT INTO "event" VALUES(5,1795017417119586,'config.changed','ada',NULL,NULL,'{"key":"server.bind"}');
INSERT INTO "event" VALUES(6,1795017417163567,'config.changed','ada',NULL,NULL,'{"key":"agents.scripted.command"}');
INSERT INTO "event" VALUES(7,1795017417199748,'config.changed','ada',NULL,NULL,'{"key":"agents.scripted.prompt"}');
INSERT INTO "event" VALUES(8,1795017417235566,'config.changed','ada',NULL,NULL,'{"key":"agents.scripted.headless"}');
INSERT INTO "event" VALUES(9,1795017417267560,'config.changed','ada',NULL,NULL,'{"key":"default_agent"}');
INSERT INTO "event" VALUES(10,1795017417315547,'config.changed','ada',NULL,NULL,'{"key":"scheduler.max_polecats"}');
INSERT INTO "event" VALUES(11,1795017417370396,'config.changed','ada',NULL,NULL,'{"key":"sessions.debounce_ms"}');
INSERT INTO "event" VALUES(12,1795017417407727,'bead.created','ada','sh-1',NULL,'{"imported":true}');
INSERT INTO "event" VALUES(13,1795017417407727,'bead.created','ada','sh-2',NULL,'{"imported":true}');
INSERT INTO "event" VALUES(14,1795017417407727,'bead.created','ada','sh-3',NULL,'{"imported":true}');
INSERT INTO "event" VALUES(15,1795017417407727,'bead.created','ada','sh-4',NULL,'{"imported":true}');
INSERT INTO "event" VALUES(16,1795017417407727,'bead.created','ada','si-dirty',NULL,'{"imported":true}');
INSERT INTO "event" VALUES(17,1795017417499553,'daemon.started','daemon',NULL,NULL,'{"pid":16362}');
INSERT INTO "event" VALUES(18,1795017417552493,'bead.created','ada','hq-cv-awj5',NULL,'{"priority":2,"title":"Work: Held","type":"convoy"}');
INSERT INTO "event" VALUES(19,1795017417552493,'convoy.created','ada','hq-cv-awj5',NULL,'{"members":["si-dirty"],"owned":false}');
INSERT INTO "event" VALUES(20,1795017417552493,'context.scheduled','ada','si-dirty',NULL,'{"by":"sling","context":"si-wisp-vflxh"}');
INSERT INTO "event" VALUES(21,1795017417559737,'bead.hooked','daemon','si-dirty','01a1ef60-2358-76a9-874e-c7b8b026d182','{"agent":"scripted","context":"si-wisp-vflxh","polecat":"Toast","rig":"site"}');
INSERT INTO "event" VALUES(22,1795017417685162,'run.started','daemon','si-dirty','01a1ef60-2358-76a9-874e-c7b8b026d182','{"agent":"scripted","branch":"polecat/Toast/si-dirty@c7b8b026d182","formula":"mol-polecat-work@0922cdef24e8","pid":16402,"polecat":"Toast","rig":"site"}');
INSERT INTO "event" VALUES(23,1795017417678998,'run.reported','site/polecats/Toast','si-dirty','01a1ef60-2358-76a9-874e-c7b8b026d182','{"cost":null,"note":null,"outcome":"completed","polecat":"Toast","rig":"site"}');
INSERT INTO "event" VALUES(24,1795017417678998,'merge.queued','site/polecats/Toast','si-dirty','01a1ef60-2358-76a9-874e-c7b8b026d182','{"branch":"polecat/Toast/si-dirty@c7b8b026d182","commit":"a86ca9a6f5d720fb66a7be5a8f0d8b929d502b0b","merge":"si-mr-r9d8j","rig":"site","target":"main"}');
INSERT INTO "event" VALUES(25,1795017417726935,'run.ended','daemon','si-dirty','01a1ef60-2358-76a9-874e-c7b8b026d182','{"branch":"polecat/Toast/si-dirty@c7b8b026d182","exit_code":0,"failure":null,"last_output":null,"leftover":0,"outcome":"completed","polecat":"Toast","reason":"exit code 0","rig":"site","signal":null}');
INSERT INTO "event" VALUES(26,1795017417776401,'merge.held','daemon',NULL,NULL,'{"reason":"[HOME]/site has the target checked out, and has uncommitted changes","rig":"site","target":"main"}');
INSERT INTO "event" VALUES(27,1795017417841254,'bead.created','ada','hq-cv-ks68',NULL,'{"priority":2,"title":"Work: One and 3 more","type":"convoy"}');
INSERT INTO "event" VALUES(28,1795017417841254,'convoy.created','ada','hq-cv-ks68',NULL,'{"members":["sh-1","sh-2","sh-3","sh-4"],"owned":false}');
INSERT INTO "event" VALUES(29,1795017417841254,'context.scheduled','ada','sh-1',NULL,'{"by":"sling","context":"sh-wisp-kr7nc"}');
INSERT INTO "event" VALUES(30,1795017417841254,'context.scheduled','ada','sh-2',NULL,'{"by":"sling","context":"sh-wisp-8qzmj"}');
INSERT INTO "event" VALUES(31,1795017417841254,'context.scheduled','ada','sh-3',NULL,'{"by":"sling","context":"sh-wisp-4qfdk"}');
INSERT INTO "event" VALUES(32,1795017417841254,'context.scheduled','ada','sh-4',NULL,'{"by":"sling","context":"sh-wisp-a35u4"}');
INSERT INTO "event" VALUES(33,1795017417859796,'bead.hooked','daemon','sh-1','01a1ef60-2484-7582-b0ec-0bc15cae3908','{"agent":"scripted","context":"sh-wisp-kr7nc","polecat":"Toast","rig":"shop"}');
INSERT INTO "event" VALUES(34,1795017417859796,'bead.hooked','daemon','sh-2','01a1ef60-2484-7582-b0ec-0bc201d5e08c','{"agent":"scripted","context":"sh-wisp-8qzmj","polecat":"Ember","rig":"shop"}');
INSERT INTO "event" VALUES(35,1795017417982840,'run.started','daemon','sh-2','01a1ef60-2484-7582-b0ec-0bc201d5e08c','{"agent":"scripted","branch":"polecat/Ember/sh-2@0bc201d5e08c","formula":"mol-polecat-work@0922cdef24e8","pid":16470,"polecat":"Ember","rig":"shop"}');
INSERT INTO "event" VALUES(36,1795017417982840,'run.started','daemon','sh-1','01a1ef60-2484-7582-b0ec-0bc15cae3908','{"agent":"scripted","branch":"polecat/Toast/sh-1@0bc15cae3908","formula":"mol-polecat-work@0922cdef24e8","pid":16472,"polecat":"Toast","rig":"shop"}');
INSERT INTO "event" VALUES(37,1795017417986162,'message.received','ada',NULL,NULL,'{"channel":"cli","message":1,"outcome":"queued","sender":"ada","session":"dm:anna","turn":1}');
INSERT INTO "event" VALUES(38,1795017418036672,'run.started','daemon',NULL,'01a1ef60-250e-7586-bc8c-0e0ec053c6d2','{"agent":"scripted","lane":"main","pid":16494,"session":"dm:anna","turn":1}');
INSERT INTO "event" VALUES(39,1795017418110565,'message.received','ada',NULL,NULL,'{"channel":"cli","message":2,"outcome":"queued","sender":"ada","session":"dm:anna","turn":2}');
INSERT INTO "event" VALUES(40,1795017418143751,'job.added','ada',NULL,NULL,'{"id":"job-1","job":"tidy","kind":"cron","next_at":"2027-01-01T08:00:00Z","payload":"run","state":"active"}');
INSERT INTO "event" VALUES(41,1795017418166348,'job.added','ada',NULL,NULL,'{"id":"job-2","job":"later","kind":"at","next_at":"2999-01-01T09:00:00Z","payload":"message","state":"active"}');
CREATE TABLE event_reader (
  name TEXT    PRIMARY KEY,
  seq  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE feeding (
  convoy INTEGER PRIMARY KEY,
  fed_at INTEGER NOT NULL
) STRICT;
CREATE TABLE fire (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  job          INTEGER NOT NULL,        -- job.id
  name         TEXT    NOT NULL,        -- of the job, which may be gone
  slot         INTEGER NOT NULL,
  until        INTEGER,                 -- it stands for all slots up to this one
  is_manual    INTEGER NOT NULL DEFAULT 0,
  status       TEXT    NOT NULL,        -- running, ok, failed, timeout, cancelled, missed, skipped
  attempt      INTEGER NOT NULL DEFAULT 0,
  retries      INTEGER NOT NULL DEFAULT 0, -- that it may have
  failures_max INTEGER NOT NULL DEFAULT 0, -- fires in a row that may fail; 0: any number
  made_at      INTEGER NOT NULL,
  started_at   INTEGER,
  ended_at     INTEGER,
  retry_at     INTEGER,                 -- when it is tried again
  error        TEXT,                    -- why it failed, was missed or skipped
  turn         INTEGER,                 -- turn.id of its last attempt
  run          TEXT,
  bead         TEXT,                    -- what it has made, so that another attempt does not make it again
  tokens_in    INTEGER,
  tokens_out   INTEGER,
  tokens_cached INTEGER,
  cost         REAL,
  delivery     TEXT,                    -- none, waiting, delivered, failed, suppressed, repeated, mailed
  delivery_error TEXT                   -- why it is not delivered
) STRICT;
CREATE TABLE job (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  name         TEXT    NOT NULL UNIQUE,
  is_beat      INTEGER NOT NULL DEFAULT 0, -- a heartbeat, which the config makes
  kind         TEXT    NOT NULL,        -- at, every, cron
  schedule     TEXT    NOT NULL,        -- a time, microseconds, an expression
  anchor       INTEGER NOT NULL,        -- from where `every` counts
  tz           TEXT    NOT NULL,
  payload      TEXT    NOT NULL,
  missed       TEXT    NOT NULL,        -- skip, once, all
  may_overlap  INTEGER NOT NULL DEFAULT 0,
  -- What somebody set for it; NULL: as the config says.
  grace        INTEGER,                 -- microseconds
  timeout      INTEGER,                 -- microseconds
  retries      INTEGER,
  lane         TEXT,
  channel      TEXT,                    -- where its answer goes; NULL: nowhere
  recipient    TEXT,
  state        TEXT    NOT NULL,        -- active, paused, disabled
  why          TEXT,                    -- why it is disabled
  next_at      INTEGER,                 -- its next slot; NULL: it is not active, or its only one has come
  failures     INTEGER NOT NULL DEFAULT 0, -- fires in a row that failed
  made_at      INTEGER NOT NULL,
  seen_at      INTEGER NOT NULL,        -- when its slots were seen to last, by the clock of then; at first: when it was made
  peak_at      INTEGER NOT NULL,        -- the latest time at which they were
  last_at      INTEGER,                 -- the slot that something became of last
  last_status  TEXT,
  said         TEXT,                    -- what a heartbeat delivered last
  said_at      INTEGER
) STRICT;
INSERT INTO "job" VALUES(1,'tidy',0,'cron','0 8 1 1 *',1795017418143751,'UTC','{"run":{"command":"echo tidy >> \"$HOME/trace\""}}','once',0,NULL,NULL,NULL,NULL,NULL,NULL,'active',NULL,1798790400000000,0,1795017418143751,1795017418143751,1795017418143751,NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(2,'later',0,'at','2999-01-01T09:00:00Z',1795017418166348,'UTC','{"message":{"text":"Happy new year"}}','once',0,NULL,NULL,NULL,NULL,NULL,NULL,'active',NULL,32472176400000000,0,1795017418166348,1795017418166348,1795017418166348,NULL,NULL,NULL,NULL);
CREATE TABLE label (
  bead  INTEGER NOT NULL,
  place INTEGER NOT NULL,               -- labels keep their order
  label TEXT    NOT NULL,
  PRIMARY KEY (bead, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE laggard (
  convoy INTEGER PRIMARY KEY,
  member TEXT    NOT NULL
) STRICT;
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
INSERT INTO "merge" VALUES('si-mr-r9d8j',1,5,'01a1ef60-2358-76a9-874e-c7b8b026d182','site','main','polecat/Toast/si-dirty@c7b8b026d182','a86ca9a6f5d720fb66a7be5a8f0d8b929d502b0b','mr','waiting',1795017417678998,NULL,NULL,NULL,0,NULL,NULL,NULL);
CREATE TABLE merge_hold (
  rig    TEXT    NOT NULL,
  target TEXT    NOT NULL,
  since  INTEGER NOT NULL,
  until  INTEGER NOT NULL,           -- the next try
  tries  INTEGER NOT NULL,
  reason TEXT    NOT NULL,
  PRIMARY KEY (rig, target)
) STRICT, WITHOUT ROWID;
INSERT INTO "merge_hold" VALUES('site','main',1795017417776401,1795017448941696,5,'[HOME]/site has the target checked out, and has uncommitted changes');
CREATE TABLE merge_pause (
  rig    TEXT    PRIMARY KEY,
  at     INTEGER NOT NULL,
  by     TEXT    NOT NULL,
  reason TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE message (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  turn     INTEGER,                     -- NULL: there was no room for it, or it was a command
  sender   TEXT    NOT NULL,
  channel  TEXT    NOT NULL,            -- that it came by
  source   TEXT,                        -- its name there: what comes twice is taken once
  text     TEXT    NOT NULL,
  at       INTEGER NOT NULL,
  answer   TEXT                         -- what was said to a command
) STRICT;
INSERT INTO "message" VALUES(1,1,'ada','cli',NULL,'first',1795017417986162,NULL);
INSERT INTO "message" VALUES(2,2,'ada','cli',NULL,'second',1795017418110565,NULL);
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
CREATE TABLE outbox (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  key        TEXT    NOT NULL UNIQUE,
  channel    TEXT    NOT NULL,
  recipient  TEXT,
  reply_to   TEXT,
  session    TEXT    NOT NULL,
  run        TEXT,
  outcome    TEXT    NOT NULL,
  text       TEXT    NOT NULL,          -- empty: only that it is over
  sent_parts INTEGER NOT NULL DEFAULT 0,
  made_at    INTEGER NOT NULL,
  state      TEXT    NOT NULL,          -- waiting, delivered, failed
  tries      INTEGER NOT NULL DEFAULT 0,
  next_at    INTEGER NOT NULL,
  error      TEXT,
  done_at    INTEGER
) STRICT;
CREATE TABLE polecat (
  rig      TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  run      TEXT,                        -- NULL: idle
  last_run TEXT,
  bead     TEXT,                        -- id of the last work
  worktree TEXT,
  branch   TEXT,
  kept     TEXT,                        -- why it is not given new work: what is in its worktree
  since    INTEGER NOT NULL,
  PRIMARY KEY (rig, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "polecat" VALUES('shop','Ember','01a1ef60-2484-7582-b0ec-0bc201d5e08c','01a1ef60-2484-7582-b0ec-0bc201d5e08c','sh-2','[HOME]/town/.gt/polecats/shop/Ember','polecat/Ember/sh-2@0bc201d5e08c',NULL,1795017417859796);
INSERT INTO "polecat" VALUES('shop','Toast','01a1ef60-2484-7582-b0ec-0bc15cae3908','01a1ef60-2484-7582-b0ec-0bc15cae3908','sh-1','[HOME]/town/.gt/polecats/shop/Toast','polecat/Toast/sh-1@0bc15cae3908',NULL,1795017417859796);
INSERT INTO "polecat" VALUES('site','Toast',NULL,'01a1ef60-2358-76a9-874e-c7b8b026d182','si-dirty','[HOME]/town/.gt/polecats/site/Toast','polecat/Toast/si-dirty@c7b8b026d182',NULL,1795017417726935);
CREATE TABLE rig (
  name   TEXT PRIMARY KEY,
  prefix TEXT NOT NULL UNIQUE,
  path   TEXT NOT NULL,
  url    TEXT,
  branch TEXT NOT NULL,
  state  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "rig" VALUES('shop','sh','[HOME]/shop',NULL,'main','active');
INSERT INTO "rig" VALUES('site','si','[HOME]/site',NULL,'main','active');
CREATE TABLE "run" (
  id           TEXT    PRIMARY KEY,
  bead         INTEGER,                 -- NULL: it is a turn of a session
  context      TEXT    NOT NULL,
  rig          TEXT    NOT NULL,
  polecat      TEXT    NOT NULL,
  agent        TEXT    NOT NULL,
  host         TEXT    NOT NULL,
  state        TEXT    NOT NULL,        -- starting, working, ended
  starter      TEXT    NOT NULL,        -- the process that starts it
  claimed_at   INTEGER NOT NULL,
  started_at   INTEGER,
  ended_at     INTEGER,
  pid          INTEGER,
  birth        INTEGER,
  session      TEXT,                    -- the name of its terminal
  branch       TEXT,
  worktree     TEXT,
  log          TEXT,
  said         TEXT,                    -- the outcome that it reported itself
  said_at      INTEGER,
  note         TEXT,
  stop_at      INTEGER,                 -- it was told to stop, and nothing it says counts any more
  stop_by      TEXT,
  stop_outcome TEXT,
  stop_reason  TEXT,
  outcome      TEXT,
  end_reason   TEXT,
  exit_code    INTEGER,
  exit_signal  INTEGER,
  cost         REAL,                    -- US dollars, as reported
  activity     TEXT,                    -- working, waiting, turn-over; NULL: it has told nothing
  waiting_for  TEXT,                    -- approval, question, auth, trust, limit
  activity_at  INTEGER,
  conversation TEXT,                    -- the agent's own name for it
  tokens_in    INTEGER,
  tokens_out   INTEGER,
  tokens_cached INTEGER,
  failure      TEXT,                    -- the class of the failure that it ended with
  cost_at      INTEGER,                 -- when its cost was last told
  last_output  TEXT,
  stalled_at   INTEGER,
  interrupted_at INTEGER,
  tip          TEXT,                    -- the commit that it had when it handed its work on
  turn         INTEGER,                 -- turn.id
  lane         TEXT,                    -- that it counts in; NULL: the scheduler's cap
  resumes      TEXT,                    -- the conversation that it goes on with
  rides        TEXT,                    -- the run whose place in a lane it has, as long as that waits for it
  is_aside     INTEGER NOT NULL DEFAULT 0 -- it runs beside another turn of its session
) STRICT, WITHOUT ROWID;
INSERT INTO "run" VALUES('01a1ef60-2358-76a9-874e-c7b8b026d182',5,'si-wisp-vflxh','site','Toast','scripted','[HOST]','ended','16362:1411468',1795017417559737,1795017417685162,1795017417726935,16402,1411487,'si-toast','polecat/Toast/si-dirty@c7b8b026d182','[HOME]/town/.gt/polecats/site/Toast','[HOME]/town/.gt/logs/01a1ef60-2358-76a9-874e-c7b8b026d182.log','completed',1795017417678998,NULL,NULL,NULL,NULL,NULL,'completed','exit code 0',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "run" VALUES('01a1ef60-2484-7582-b0ec-0bc15cae3908',1,'sh-wisp-kr7nc','shop','Toast','scripted','[HOST]','working','16362:1411468',1795017417859796,1795017417982840,NULL,16472,1411517,'sh-toast','polecat/Toast/sh-1@0bc15cae3908','[HOME]/town/.gt/polecats/shop/Toast','[HOME]/town/.gt/logs/01a1ef60-2484-7582-b0ec-0bc15cae3908.log',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "run" VALUES('01a1ef60-2484-7582-b0ec-0bc201d5e08c',2,'sh-wisp-8qzmj','shop','Ember','scripted','[HOST]','working','16362:1411468',1795017417859796,1795017417982840,NULL,16470,1411516,'sh-ember','polecat/Ember/sh-2@0bc201d5e08c','[HOME]/town/.gt/polecats/shop/Ember','[HOME]/town/.gt/logs/01a1ef60-2484-7582-b0ec-0bc201d5e08c.log',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "run" VALUES('01a1ef60-250e-7586-bc8c-0e0ec053c6d2',NULL,'','','','scripted','[HOST]','working','16362:1411468',1795017417989475,1795017418036672,NULL,16494,1411525,NULL,NULL,NULL,'[HOME]/town/.gt/logs/01a1ef60-250e-7586-bc8c-0e0ec053c6d2.log',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,'main',NULL,NULL,0);
CREATE TABLE scheduler (
  one                 INTEGER PRIMARY KEY CHECK (one = 1),
  paused_at           INTEGER,
  paused_by           TEXT,
  paused_reason       TEXT,
  last_dispatch_at    INTEGER,
  last_dispatch_count INTEGER
, last_queued_at INTEGER) STRICT;
INSERT INTO "scheduler" VALUES(1,NULL,NULL,NULL,1795017417859796,2,NULL);
CREATE TABLE session (
  id           INTEGER PRIMARY KEY,
  key          TEXT    NOT NULL UNIQUE,
  made_at      INTEGER NOT NULL,
  last_at      INTEGER NOT NULL,        -- of its last message or answer
  -- What somebody set for it; NULL: as the config says.
  agent        TEXT,
  lane         TEXT,
  mode         TEXT,
  cap          INTEGER,
  overflow     TEXT,
  debounce     INTEGER,                 -- microseconds
  channel      TEXT,                    -- where answers go
  recipient    TEXT,
  -- The agent's own conversation, with whom, and how full it is.
  conversation TEXT,
  talks_to     TEXT,
  tokens       INTEGER,
  is_crowded   INTEGER NOT NULL DEFAULT 0,
  -- Maintained: the first turn that waits, if there is room for it beside those that run.
  n_waiting    INTEGER NOT NULL DEFAULT 0,
  n_live       INTEGER NOT NULL DEFAULT 0,
  next_turn    INTEGER,
  next_lane    TEXT,
  next_at      INTEGER                  -- not started before
) STRICT;
INSERT INTO "session" VALUES(1,'dm:anna',1795017417986162,1795017418110565,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,1,NULL,NULL,NULL);
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
CREATE TABLE to_feed (
  bead INTEGER PRIMARY KEY
) STRICT;
CREATE TABLE to_land (
  convoy INTEGER PRIMARY KEY
) STRICT;
CREATE TABLE trouble (
  scope  TEXT    PRIMARY KEY,           -- '' the town, 'agent NAME', 'rig NAME'
  until  INTEGER NOT NULL,
  reason TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE turn (
  id           INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order in which they start
  session      INTEGER NOT NULL,        -- session.id
  origin       TEXT    NOT NULL,        -- what its messages have in common
  text         TEXT    NOT NULL,
  n_messages   INTEGER NOT NULL DEFAULT 1,
  agent        TEXT,
  lane         TEXT    NOT NULL,
  channel      TEXT,                    -- where its answer goes; NULL: whoever asked comes for it
  recipient    TEXT,
  reply_to     TEXT,
  parent       TEXT,                    -- the run that waits for its answer
  state        TEXT    NOT NULL,        -- waiting, live, ended
  made_at      INTEGER NOT NULL,
  due_at       INTEGER NOT NULL,        -- more messages may come until then; later: it is tried again
  failures     INTEGER NOT NULL DEFAULT 0, -- starts that failed
  attempts     INTEGER NOT NULL DEFAULT 0, -- runs that were interrupted
  run          TEXT,                    -- its last run
  ended_at     INTEGER,
  outcome      TEXT,                    -- done, failed, cancelled, dropped
  reply        TEXT,
  error        TEXT                     -- why it has no answer, or is not started
, fire INTEGER, command TEXT, timeout INTEGER, is_apart INTEGER NOT NULL DEFAULT 0, attempt INTEGER) STRICT;
INSERT INTO "turn" VALUES(1,1,'["ada","cli",null,"main",null,false,null]','first',1,NULL,'main',NULL,NULL,NULL,NULL,'live',1795017417986162,1795017417986162,0,0,'01a1ef60-250e-7586-bc8c-0e0ec053c6d2',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "turn" VALUES(2,1,'["ada","cli",null,"main",null,false,null]','second',1,NULL,'main',NULL,NULL,NULL,NULL,'waiting',1795017418110565,1795017418110565,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE INDEX bead_by_standing ON bead (standing, priority, created_at, key) WHERE standing IS NOT NULL;
CREATE INDEX bead_by_wake ON bead (wake_at) WHERE standing = 'deferred';
CREATE INDEX bead_by_assignee ON bead (assignee) WHERE assignee IS NOT NULL;
CREATE INDEX edge_by_target ON edge (target, type);
CREATE INDEX label_by_label ON label (label);
CREATE INDEX comment_by_bead ON comment (bead);
CREATE UNIQUE INDEX context_live ON context (bead) WHERE state <> 'closed';
CREATE INDEX context_open ON context (enqueued_at, id) WHERE state = 'open';
CREATE INDEX context_queue ON context (enqueued_at, id) WHERE state = 'open' AND ready = 1;
CREATE INDEX context_urgent ON context (priority, enqueued_at, id) WHERE state = 'open' AND ready = 1;
CREATE INDEX context_stale ON context (id) WHERE state = 'open' AND ready = 2;
CREATE INDEX context_retry ON context (retry_at) WHERE state = 'open' AND retry_at IS NOT NULL;
CREATE TRIGGER context_follows_standing AFTER UPDATE OF standing ON bead WHEN new.standing IS NOT old.standing BEGIN
  UPDATE context SET ready = CASE WHEN new.standing IS NULL THEN 2 ELSE new.standing = 'ready' END
    WHERE bead = new.key AND state <> 'closed' AND state = 'open'; -- the first of the two finds the index
END;
CREATE TRIGGER context_follows_priority AFTER UPDATE OF priority ON bead WHEN new.priority <> old.priority BEGIN
  UPDATE context SET priority = new.priority WHERE bead = new.key AND state <> 'closed' AND state = 'open';
END;
CREATE INDEX polecat_idle ON polecat (rig, since DESC, name) WHERE run IS NULL AND kept IS NULL;
CREATE INDEX polecat_by_run ON polecat (run) WHERE run IS NOT NULL;
CREATE INDEX polecat_by_last_run ON polecat (last_run);
CREATE INDEX dispatch_hold ON dispatch_record (hold_until) WHERE hold_until IS NOT NULL;
CREATE INDEX context_slung ON context (enqueued_at, id) WHERE state = 'open' AND ready = 1 AND queued = 0;
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
CREATE INDEX mail_by_recipient ON mail (recipient, id);
CREATE INDEX mail_unread ON mail (recipient, id) WHERE read_at IS NULL;
CREATE INDEX notice_due ON notice (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX bead_on_hook ON bead (updated_at) WHERE status IN ('hooked', 'in_progress');
CREATE UNIQUE INDEX merge_live ON merge (bead) WHERE state IN ('waiting', 'requested');
CREATE UNIQUE INDEX merge_queue ON merge (rig, target, place) WHERE state IN ('waiting', 'requested');
CREATE INDEX merge_by_place ON merge (place);
CREATE INDEX merge_by_rework ON merge (rework) WHERE rework IS NOT NULL;
CREATE INDEX merge_by_bead ON merge (bead);
CREATE UNIQUE INDEX run_live ON run (bead) WHERE state <> 'ended';
CREATE UNIQUE INDEX run_turn_live ON run (turn) WHERE state <> 'ended';
CREATE INDEX run_alive ON run (claimed_at, id) WHERE state <> 'ended';
CREATE INDEX run_by_claim ON run (claimed_at);
CREATE INDEX run_by_bead ON run (bead, claimed_at);
CREATE INDEX run_by_turn ON run (turn, claimed_at) WHERE turn IS NOT NULL;
CREATE INDEX run_by_conversation ON run (conversation) WHERE turn IS NOT NULL;
CREATE INDEX run_by_report ON run (said_at) WHERE said_at IS NOT NULL;
CREATE INDEX run_by_cost ON run (cost_at) WHERE cost_at IS NOT NULL;
CREATE INDEX run_in_lane ON run (lane) WHERE state <> 'ended' AND lane IS NOT NULL;
CREATE INDEX session_next ON session (next_lane, next_turn) WHERE next_turn IS NOT NULL;
CREATE INDEX session_next_at ON session (next_at) WHERE next_turn IS NOT NULL;
CREATE INDEX session_by_use ON session (last_at);
CREATE INDEX turn_waiting ON turn (session, id) WHERE state = 'waiting';
CREATE INDEX turn_live ON turn (session, id) WHERE state = 'live';
CREATE INDEX turn_awaited ON turn (parent) WHERE parent IS NOT NULL AND state <> 'ended';
CREATE INDEX turn_by_session ON turn (session, id);
CREATE INDEX turn_by_end ON turn (ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX message_source ON message (channel, source) WHERE source IS NOT NULL;
CREATE INDEX message_by_turn ON message (turn);
CREATE INDEX message_by_time ON message (at);
CREATE INDEX outbox_waiting ON outbox (next_at) WHERE state = 'waiting';
CREATE INDEX outbox_order ON outbox (channel, recipient, id) WHERE state = 'waiting';
CREATE INDEX outbox_done ON outbox (done_at) WHERE done_at IS NOT NULL;
CREATE INDEX job_next ON job (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX job_rests ON job (id) WHERE next_at IS NULL;
CREATE INDEX job_disabled ON job (name) WHERE state = 'disabled';
CREATE INDEX job_beat ON job (name) WHERE is_beat = 1;
CREATE UNIQUE INDEX fire_slot ON fire (job, slot) WHERE status <> 'missed';
CREATE UNIQUE INDEX fire_missed ON fire (job, slot) WHERE status = 'missed';
CREATE INDEX fire_by_job ON fire (job, id);
CREATE INDEX fire_by_name ON fire (name, id);
CREATE INDEX fire_running ON fire (job) WHERE status = 'running';
CREATE INDEX fire_retry ON fire (retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX fire_by_turn ON fire (turn) WHERE turn IS NOT NULL;
CREATE INDEX fire_by_end ON fire (ended_at) WHERE ended_at IS NOT NULL;
CREATE TRIGGER fire_delivery AFTER UPDATE OF state ON outbox WHEN new.key LIKE 'turn-%' AND new.state <> old.state
BEGIN
  UPDATE fire SET delivery = new.state, delivery_error = new.error WHERE turn = CAST(substr(new.key, 6) AS INTEGER)
    AND delivery = 'waiting';
END;
CREATE INDEX turn_by_fire ON turn (fire) WHERE fire IS NOT NULL;
CREATE INDEX turn_to_somebody ON turn (id) WHERE channel IS NOT NULL AND fire IS NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('turn',2);
INSERT INTO "sqlite_sequence" VALUES('message',2);
INSERT INTO "sqlite_sequence" VALUES('job',2);
COMMIT;
PRAGMA user_version = 12;
PRAGMA application_id = 1197568817;
