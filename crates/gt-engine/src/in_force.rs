//! The config in force: reading the file, deciding, and keeping what is good in the store. // SPEC T5
//!
//! Everybody who acts under the config asks here. The decision itself is `config::decide`; the texts of good configs are
//! `kept_texts`.

use std::path::Path;

use gt_core::rig::Rig;
use gt_store::{ChangedConfig, KeptConfig, NewConfig, SeenConfig, Stamp, Store, StoreError, Via};
use jiff::SignedDuration;

use crate::config::{
    self, Config, ConfigError, Decision, Dropped, Edit, Found, KnownNames, LastGood, Value, Waited, decide, digest,
    join,
};
use crate::error::{TownError, chain};
use crate::formulas::Library;
use crate::git;
use crate::kept_texts;
use crate::settings;
use crate::surroundings::Surroundings;
use crate::town::{CONFIG_FILE, Town};

/// How often a text is looked for that is cleared away meanwhile.
const LOOKS: usize = 3;

/// The config that counts now.
#[derive(Debug)]
pub struct InForce {
    pub config: Config,
    /// Of what is kept in the store; 0: nothing is.
    pub version: i64,
    /// Why it is not the file as it is.
    pub notice: Option<Notice>,
}

impl InForce {
    /// A file's config, where there is no store that could know better.
    pub fn of_file(config: Config) -> InForce {
        InForce { config, version: 0, notice: None }
    }
}

/// Why the last good config is in force, and not the file.
#[derive(Debug)]
pub enum Notice {
    Broken {
        problem: ConfigError,
    },
    Waits {
        dropped: Vec<Dropped>,
        left: SignedDuration,
        seen: SeenConfig,
    },
    /// The store or the disk could not take it.
    Unkept {
        problem: TownError,
    },
}

impl Notice {
    /// What is wrong, and what holds meanwhile, in one sentence.
    pub fn words(&self) -> String {
        match self {
            Notice::Broken { problem } => format!("{}; the last good config stays in force", chain(problem)),
            Notice::Unkept { problem } => {
                format!("{CONFIG_FILE} cannot be kept: {}; the last good config stays in force", chain(problem))
            }
            Notice::Waits { dropped, left, .. } => {
                let what: Vec<String> = dropped.iter().map(ToString::to_string).collect();
                format!(
                    "{}; that counts in {} s, unless the file changes again",
                    what.join(" and "),
                    left.as_secs().max(1)
                )
            }
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Notice::Broken { problem } => problem.hint(),
            Notice::Unkept { .. } => Some("is the disk full? It counts as soon as it can be kept".to_owned()),
            Notice::Waits { .. } => None,
        }
    }
}

/// What was decided, and what is kept.
pub(crate) struct Decided {
    pub decision: Decision,
    /// 0: nothing is.
    pub version: i64,
}

/// Reads the file and the store and decides; changes nothing.
pub(crate) fn decide_now(
    town: &Town,
    store: &mut Store,
    around: &dyn Surroundings,
    waited: impl FnOnce(&SeenConfig) -> Waited,
) -> Result<Decided, StoreError> {
    // The store first: a file that was read before a command changed both would be kept over what the command has set.
    let (version, last_good) = last_good(town, store)?;
    let file = town.config_file();
    // Its time before its text: a file that changes while it is read is younger than it is taken for, not older.
    let changed_at = around.changed_at(file.path());
    let read = file.read().and_then(|text| Ok((text.clone(), file.parse(&text)?)));
    let now = around.now();
    let mut rigs = None;
    let waited = match &read {
        Ok((text, _)) if last_good.as_ref().is_some_and(|kept| kept.text != *text) => {
            rigs = Some(rig_names(store)?);
            waited(&SeenConfig { digest: digest(text), changed_at, at: now })
        }
        _ => Waited::Clock,
    };
    let is_void = |key: &str| rigs.as_ref().is_some_and(|rigs| config::is_of_missing_rig(rigs, key));
    let decision = decide(Found { read, changed_at }, last_good.as_ref(), now, waited, is_void);
    Ok(Decided { decision, version })
}

/// The last good config and its version. A text that is lost is as good as none was kept.
pub(crate) fn last_good(town: &Town, store: &mut Store) -> Result<(i64, Option<LastGood>), StoreError> {
    for _ in 0..LOOKS {
        let Some(KeptConfig { version, digest, kept_at, seen }) = store.kept_config()? else { return Ok((0, None)) };
        if let Some(text) = kept_texts::find(town, &digest) {
            return Ok((version, Some(LastGood { text, kept_at, seen })));
        }
        // Another one may have been kept meanwhile, and this one cleared away.
        if store.config_version()? == version {
            return Ok((version, None));
        }
    }
    Ok((store.config_version()?, None))
}

/// The config in force for a command, or for a thread of the daemon. A good edit that it meets first is kept.
pub fn load(town: &Town, store: &mut Store, around: &dyn Surroundings) -> Result<InForce, TownError> {
    settle(town, store, around, true)
}

/// The same for those who only look: nothing is kept.
pub fn look(town: &Town, store: &mut Store, around: &dyn Surroundings) -> Result<InForce, TownError> {
    settle(town, store, around, false)
}

fn settle(town: &Town, store: &mut Store, around: &dyn Surroundings, keeps: bool) -> Result<InForce, TownError> {
    let by_whom = |_: &SeenConfig| if around.has_daemon(town) { Waited::Daemon } else { Waited::Clock };
    let Decided { decision, version } = decide_now(town, store, around, by_whom)?;
    match decision {
        Decision::Kept(config) => Ok(InForce { config, version, notice: None }),
        Decision::Take { config, .. } if !keeps => Ok(InForce { config, version, notice: None }),
        Decision::Take { text, config, dropped } => match keep(town, store, around, &text, version, &dropped) {
            Ok(kept) => Ok(InForce { config, version: kept.unwrap_or(version), notice: None }),
            Err(problem) => unkept(town, store, config, problem),
        },
        Decision::Wait { config, dropped, left, seen, is_news } => {
            if is_news && keeps {
                // Where it cannot be noted, the wait begins when the next one asks.
                store.note_seen_config(version, &seen, &stamp(around)).unwrap_or_default();
            }
            Ok(InForce { config, version, notice: Some(Notice::Waits { dropped, left, seen }) })
        }
        Decision::Broken { config: Some(config), problem } => {
            Ok(InForce { config, version, notice: Some(Notice::Broken { problem }) })
        }
        Decision::Broken { config: None, problem } => Err(problem.into()),
    }
}

/// What is in force while a good edit cannot be kept: the last good config, for the daemon too. Without one it is the file.
fn unkept(town: &Town, store: &mut Store, file: Config, problem: TownError) -> Result<InForce, TownError> {
    let (version, kept) = last_good(town, store)?;
    Ok(match kept.and_then(|kept| Config::parse(&kept.text).ok()) {
        Some(config) => InForce { config, version, notice: Some(Notice::Unkept { problem }) },
        None => InForce { config: file, version, notice: None },
    })
}

/// Keeps a good edit of the file, and returns its version; `None`: another process was first, and kept this one or a newer one.
pub(crate) fn keep(
    town: &Town,
    store: &mut Store,
    around: &dyn Surroundings,
    text: &str,
    after: i64,
    dropped: &[Dropped],
) -> Result<Option<i64>, TownError> {
    let digest = kept_texts::put(town, text)?;
    let new = NewConfig { digest: &digest, after, via: Via::File, dropped: &pairs(dropped) };
    let kept = store.keep_config(&new, &stamp(around))?;
    // What stays now goes with the next patrol.
    clear_texts(town, store).unwrap_or_default();
    Ok(kept.map(|kept| kept.version))
}

/// Clears away texts that count no more: they may hold secrets that were removed.
pub(crate) fn clear_texts(town: &Town, store: &mut Store) -> Result<(), StoreError> {
    if let Some(kept) = store.kept_config()? {
        kept_texts::clear(town, &kept.digest);
    }
    Ok(())
}

/// Has a text count from now on, whatever it drops.
pub fn keep_at_once(town: &Town, store: &mut Store, text: &str, stamp: &Stamp) -> Result<(), TownError> {
    let (digest, after) = (kept_texts::put(town, text)?, store.config_version()?);
    store.keep_config(&NewConfig { digest: &digest, after, via: Via::Command, dropped: &[] }, stamp)?;
    Ok(())
}

/// Writes what a command makes of the file, and records it. It counts at once, whatever else the file says that does not
/// count yet: `again` makes the same edit of the last good config. Says whether anything changed.
pub fn change(
    town: &Town,
    store: &mut Store,
    around: &dyn Surroundings,
    key: &str,
    edit: Edit,
    again: impl Fn(&str) -> Result<Option<String>, ConfigError>,
    stamp: &Stamp,
) -> Result<bool, TownError> {
    // What the file says already counts before the edit does, so that only what the command drops is put down to it.
    if let Err(TownError::Store(error)) = load(town, store, around) {
        return Err(error.into());
    }
    let text = edit.text().to_owned();
    let is_written = edit.changes() && edit.write()?;
    // Where the file says it already but waits to count, the command has it count at once.
    if !is_written && !is_pending(town, store, &again)? {
        return Ok(false);
    }
    store.change_config(key, |kept| changed(town, kept, &text, again), stamp)?;
    clear_texts(town, store).unwrap_or_default();
    Ok(true)
}

/// Whether an edit that the file has already would change what is in force.
pub fn is_pending(
    town: &Town,
    store: &mut Store,
    again: impl Fn(&str) -> Result<Option<String>, ConfigError>,
) -> Result<bool, TownError> {
    let (_, kept) = last_good(town, store)?;
    Ok(kept.is_some_and(|kept| again(&kept.text).ok().flatten().is_some_and(|text| text != kept.text)))
}

/// The last good config after a command's edit; `None`: it is as it was, or cannot be edited so and the file has to do.
fn changed(
    town: &Town,
    kept: Option<&KeptConfig>,
    file: &str,
    again: impl Fn(&str) -> Result<Option<String>, ConfigError>,
) -> Option<ChangedConfig> {
    let old_text = kept.and_then(|kept| kept_texts::find(town, &kept.digest));
    let old = old_text.and_then(|text| Some((Config::parse(&text).ok()?, text)));
    let (text, dropped) = match old {
        None => Config::parse(file).is_ok().then(|| (file.to_owned(), Vec::new()))?,
        Some((old, old_text)) => {
            let text = again(&old_text).ok().flatten().filter(|text| *text != old_text)?;
            let new = Config::parse(&text).ok()?;
            (text, pairs(&config::dropped(&old, &new, |_| false)))
        }
    };
    Some(ChangedConfig { digest: kept_texts::put(town, &text).ok()?, dropped })
}

/// What a config may name, as the town is now.
pub fn known_names(town: &Town, store: &mut Store, config: &Config) -> Result<KnownNames, StoreError> {
    let rigs = store.rigs()?;
    let is_set = |rig: &Rig, leaf: &str| config.value(&join(&["rigs", &rig.name, leaf]));
    // Git is asked, and formulas are listed, only where a setting depends on it.
    let is_without_origin = |rig: &&Rig| {
        let is_pushed = rig.url.is_none() && is_set(rig, "push") == Some(Value::Boolean(true));
        is_pushed && git::origin(Path::new(&rig.path)).is_ok_and(|origin| origin.is_none())
    };
    let has_formula = config
        .names("rigs")
        .iter()
        .any(|rig| config.keys_of(&["rigs", rig]).iter().any(|key| key.ends_with("formula")));
    let formulas = if has_formula { Library::of(town).names() } else { Vec::new() };
    Ok(KnownNames {
        hosts: vec![settings::host()],
        formulas: formulas.into_iter().map(|(_, name, _)| name).collect(),
        without_origin: rigs.iter().filter(is_without_origin).map(|rig| rig.name.clone()).collect(),
        rigs: rigs.into_iter().map(|rig| rig.name).collect(),
    })
}

fn rig_names(store: &mut Store) -> Result<Vec<String>, StoreError> {
    Ok(store.rigs()?.into_iter().map(|rig| rig.name).collect())
}

/// Removes the settings of a rig that is no longer registered, and says whether there were any. A broken file is left alone.
pub fn remove_rig_settings(
    town: &Town,
    store: &mut Store,
    around: &dyn Surroundings,
    rig: &str,
    stamp: &Stamp,
) -> Result<bool, TownError> {
    let (keys, edit) = plan_without_rig(town, rig)?;
    let again = |text: &str| config::unset_all(text, &keys);
    change(town, store, around, &join(&["rigs", rig]), edit, again, stamp)
}

/// Whether the file has settings of a rig that can be removed.
pub fn has_rig_settings(town: &Town, rig: &str) -> Result<bool, TownError> {
    Ok(plan_without_rig(town, rig)?.1.changes())
}

fn plan_without_rig(town: &Town, rig: &str) -> Result<(Vec<String>, Edit), ConfigError> {
    let file = town.config_file();
    let keys = file.load()?.keys_of(&["rigs", rig]);
    let edit = file.plan_unset_all(&keys)?;
    Ok((keys, edit))
}

/// Nobody knows who edited a file.
fn stamp(around: &dyn Surroundings) -> Stamp {
    Stamp::new(around.now(), CONFIG_FILE)
}

pub(crate) fn pairs(dropped: &[Dropped]) -> Vec<(String, String)> {
    dropped.iter().map(|one| (one.key.clone(), one.was.clone())).collect()
}
