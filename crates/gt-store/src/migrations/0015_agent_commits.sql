-- Commits that the refinery brings to a branch: agents' work and its own merges. These may be pushed; what else a branch has that
-- its origin has not is a person's.
CREATE TABLE agent_commit (
  id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
