-- Defaults that have changed since the town was made, until `gt status` has shown them. A town without rigs has nothing that
-- they change.
CREATE TABLE changed_default (
    key TEXT PRIMARY KEY
) STRICT;

INSERT INTO changed_default (key)
SELECT column1 FROM (VALUES ('guards.max_agents'), ('rigs.NAME.push')) WHERE EXISTS (SELECT 1 FROM rig);
