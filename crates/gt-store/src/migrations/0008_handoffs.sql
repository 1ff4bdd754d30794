-- Handing work on without end is noticed by what it leads to. (docs/decisions/0009)

ALTER TABLE run ADD COLUMN tip TEXT; -- the commit that it had when it handed its work on
