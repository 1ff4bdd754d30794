-- Why a rework takes the place of the commits that came back.
ALTER TABLE merge ADD COLUMN replaces TEXT;
