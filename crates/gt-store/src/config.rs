//! Which config is the last good one, and which gates and caps were dropped lately. The text itself, which may hold secrets,
//! is kept by the engine; here it is known by its digest. // SPEC T5

use gt_core::event::EventType;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use crate::error::{Result, StoreError};
use crate::events;
use crate::rows::{micros, timestamp};
use crate::store::{Stamp, Store};

/// How long a dropped gate or cap is shown.
const SHOWN_FOR: SignedDuration = SignedDuration::from_hours(24);

/// The config that counts until a good one takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptConfig {
    /// Grows with each config that is kept.
    pub version: i64,
    /// Of its text.
    pub digest: String,
    pub kept_at: Timestamp,
    /// An edit that has to stay unchanged for a while before it counts.
    pub seen: Option<SeenConfig>,
}

/// An edit of the file, as it was seen first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenConfig {
    /// Of its text.
    pub digest: String,
    /// When the file changed, as the file system says.
    pub changed_at: Option<Timestamp>,
    pub at: Timestamp,
}

/// How a config was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Somebody edited the file.
    File,
    /// `gt config`.
    Command,
}

impl Via {
    pub fn as_str(self) -> &'static str {
        match self {
            Via::File => "file",
            Via::Command => "command",
        }
    }
}

/// A gate list or a cap that a config had, and the one after it has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedLimit {
    pub key: String,
    /// What it was set to.
    pub was: String,
    pub via: Via,
    pub at: Timestamp,
}

/// A config that is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewConfig<'a> {
    /// Of its text, which whoever reads this finds.
    pub digest: &'a str,
    /// The version that it takes the place of; 0: none was kept.
    pub after: i64,
    pub via: Via,
    /// Keys of gates and caps that it drops, with what they were.
    pub dropped: &'a [(String, String)],
}

/// What a command has made of the config that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedConfig {
    /// Of its text.
    pub digest: String,
    /// Keys of gates and caps that it drops, with what they were.
    pub dropped: Vec<(String, String)>,
}

impl Store {
    pub fn kept_config(&mut self) -> std::result::Result<Option<KeptConfig>, StoreError> {
        self.read(kept)
    }

    /// The version of the config that is kept; 0: none is.
    pub fn config_version(&mut self) -> std::result::Result<i64, StoreError> {
        self.read(version)
    }

    /// Keeps a good config; `None`: another process has kept one meanwhile, so that one counts.
    pub fn keep_config(
        &mut self,
        new: &NewConfig<'_>,
        stamp: &Stamp,
    ) -> std::result::Result<Option<KeptConfig>, StoreError> {
        self.write(stamp, |tx| keep(tx, new, stamp))
    }

    /// Records that `gt config` changed a key, and keeps what `edit` makes of the config that counts; `None`: nothing new.
    pub fn change_config(
        &mut self,
        key: &str,
        edit: impl FnOnce(Option<&KeptConfig>) -> Option<ChangedConfig>,
        stamp: &Stamp,
    ) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            events::append(tx, stamp, EventType::ConfigChanged, None, &json!({ "key": key }))?;
            let old = kept(tx)?;
            let Some(ChangedConfig { digest, dropped }) = edit(old.as_ref()) else { return Ok(()) };
            let after = old.map_or(0, |old| old.version);
            keep(tx, &NewConfig { digest: &digest, after, via: Via::Command, dropped: &dropped }, stamp).map(drop)
        })
    }

    /// Remembers since when an edit was seen, as long as this config is the one that counts.
    pub fn note_seen_config(
        &mut self,
        version: i64,
        seen: &SeenConfig,
        stamp: &Stamp,
    ) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let sql = "UPDATE config_kept SET seen_digest = ?2, seen_changed_at = ?3, seen_at = ?4 WHERE version = ?1";
            let changed_at = seen.changed_at.map(micros);
            tx.execute(sql, params![version, seen.digest, changed_at, micros(seen.at)])?;
            Ok(())
        })
    }

    /// The gates and caps that were dropped in the last 24 hours, the newest first.
    pub fn dropped_limits(&mut self, now: Timestamp) -> std::result::Result<Vec<DroppedLimit>, StoreError> {
        self.read(|tx| {
            let sql = "SELECT key, was, via, at FROM config_dropped WHERE at > ?1 ORDER BY at DESC, key";
            let mut query = tx.prepare_cached(sql)?;
            let rows = query.query_map([micros(shown_since(now))], |row| {
                let via: String = row.get(2)?;
                Ok(DroppedLimit {
                    key: row.get(0)?,
                    was: row.get(1)?,
                    via: if via == Via::Command.as_str() { Via::Command } else { Via::File },
                    at: timestamp(row.get(3)?),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The keys whose defaults have changed since the town was made, until [`Store::forget_changed_defaults`].
    pub fn changed_defaults(&mut self) -> std::result::Result<Vec<String>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached("SELECT key FROM changed_default ORDER BY key")?;
            let rows = query.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Notes that a person has seen which defaults have changed.
    pub fn forget_changed_defaults(&mut self, keys: &[String], stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let mut delete = tx.prepare_cached("DELETE FROM changed_default WHERE key = ?1")?;
            keys.iter().try_for_each(|key| delete.execute([key]).map(drop))?;
            Ok(())
        })
    }
}

fn shown_since(now: Timestamp) -> Timestamp {
    now.checked_sub(SHOWN_FOR).unwrap_or(Timestamp::MIN)
}

fn version(tx: &Connection) -> Result<i64> {
    let found = tx.prepare_cached("SELECT version FROM config_kept")?.query_row([], |row| row.get(0)).optional()?;
    Ok(found.unwrap_or(0))
}

fn kept(tx: &Connection) -> Result<Option<KeptConfig>> {
    let sql = "SELECT version, digest, kept_at, seen_digest, seen_changed_at, seen_at FROM config_kept";
    let kept = tx.prepare_cached(sql)?.query_row([], |row| {
        let seen = row.get::<_, Option<String>>(3)?.zip(row.get::<_, Option<i64>>(5)?);
        let changed_at = row.get::<_, Option<i64>>(4)?.map(timestamp);
        Ok(KeptConfig {
            version: row.get(0)?,
            digest: row.get(1)?,
            kept_at: timestamp(row.get(2)?),
            seen: seen.map(|(digest, at)| SeenConfig { digest, changed_at, at: timestamp(at) }),
        })
    });
    Ok(kept.optional()?)
}

fn keep(tx: &Connection, new: &NewConfig<'_>, stamp: &Stamp) -> Result<Option<KeptConfig>> {
    if version(tx)? != new.after {
        return Ok(None);
    }
    let kept = KeptConfig { version: new.after + 1, digest: new.digest.to_owned(), kept_at: stamp.now, seen: None };
    tx.execute(
        "INSERT OR REPLACE INTO config_kept (id, version, digest, kept_at) VALUES (1, ?1, ?2, ?3)",
        params![kept.version, kept.digest, micros(kept.kept_at)],
    )?;
    tx.execute("DELETE FROM config_dropped WHERE at <= ?1", [micros(shown_since(stamp.now))])?;
    for (key, was) in new.dropped {
        tx.execute(
            "INSERT OR REPLACE INTO config_dropped (key, was, via, at) VALUES (?1, ?2, ?3, ?4)",
            params![key, was, new.via.as_str(), micros(stamp.now)],
        )?;
    }
    // A command has an event of its own.
    if new.via == Via::File && !new.dropped.is_empty() {
        let keys: Vec<&str> = new.dropped.iter().map(|(key, _)| key.as_str()).collect();
        let data = json!({ "dropped": keys });
        events::append(tx, stamp, EventType::ConfigLoosened, None, &data)?;
    }
    Ok(Some(kept))
}
