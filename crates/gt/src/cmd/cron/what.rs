//! The words that say what a job does, for adding and for changing one.

use clap::Args;
use gt_core::job::Payload;
use gt_core::session::{TEXT_BYTES_MAX, flaw_of_key};
use gt_core::text::one_line;
use gt_engine::agents::find_for_turns;
use gt_engine::settings::Settings;

use crate::dashes;
use crate::failure::{Failure, Kind};

/// What it does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct WhatArgs {
    /// Ask an agent this
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = dashes::text, conflicts_with_all = ["sling", "new", "run"])]
    message: Option<String>,
    /// In this session, as one of its messages; else, or with `none`, in a fresh conversation each time
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Who answers, or works; else, or with `default`, the default agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Sling these: beads, an epic, a convoy, or a formula with `--on`; and perhaps a rig
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with_all = ["new", "run"])]
    sling: Vec<String>,
    /// The bead that the formula after `--sling` is for
    #[arg(long, value_name = "BEAD")]
    on: Option<String>,
    /// Make a bead with this title each time, and sling it
    #[arg(long, value_name = "TITLE", allow_hyphen_values = true, value_parser = dashes::text, conflicts_with = "run")]
    new: Option<String>,
    /// The rig that the new bead is for
    #[arg(long, value_name = "RIG")]
    rig: Option<String>,
    /// The recipe to work by; `default`: as usual
    #[arg(long, value_name = "FORMULA")]
    formula: Option<String>,
    /// Instructions for whoever works
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = dashes::text)]
    args: Option<String>,
    /// Run this command of the shell, in the town's directory
    #[arg(long, value_name = "CMD", allow_hyphen_values = true, value_parser = dashes::text)]
    run: Option<String>,
}

impl WhatArgs {
    fn is_sling(&self) -> bool {
        !self.sling.is_empty() || self.new.is_some()
    }

    /// The words that would ask for what a job does at present.
    fn of(payload: &Payload) -> WhatArgs {
        let none = WhatArgs::default();
        match payload {
            Payload::Message { text, session, agent } => {
                WhatArgs { message: Some(text.clone()), session: session.clone(), agent: agent.clone(), ..none }
            }
            Payload::Run { command } => WhatArgs { run: Some(command.clone()), ..none },
            Payload::Sling { words } => WhatArgs::of_sling(words),
            Payload::Heartbeat(_) | Payload::Broken(_) => none,
        }
    }

    fn of_sling(words: &[String]) -> WhatArgs {
        let value = |flag: &str| words.iter().find_map(|word| word.strip_prefix(flag).map(str::to_owned));
        let mut plain: Vec<String> = words.iter().filter(|word| !word.starts_with("--")).cloned().collect();
        let new = value("--new=");
        WhatArgs {
            rig: new.as_ref().and_then(|_| plain.pop()),
            sling: plain,
            new,
            on: value("--on="),
            formula: value("--formula="),
            args: value("--args="),
            agent: value("--agent="),
            ..WhatArgs::default()
        }
    }

    /// These words, and for what they leave open those of the present, as far as they are about the same kind of thing.
    fn or(&self, present: WhatArgs) -> WhatArgs {
        let mut all = self.clone();
        let names_none = self.message.is_none() && self.run.is_none() && !self.is_sling();
        if names_none {
            all.message.clone_from(&present.message);
            all.run.clone_from(&present.run);
        }
        if all.message.is_some() && present.message.is_some() {
            all.session = all.session.or(present.session);
            all.agent = all.agent.or(present.agent);
        } else if present.is_sling() && (names_none || self.is_sling()) {
            all = all.or_of_sling(present);
        }
        all
    }

    fn or_of_sling(mut self, present: WhatArgs) -> WhatArgs {
        if !self.is_sling() {
            self.on = self.on.or(present.on);
            (self.sling, self.new) = (present.sling, present.new.clone());
        }
        if self.new.is_some() {
            self.rig = self.rig.or(present.rig);
        }
        self.formula = self.formula.or(present.formula);
        self.args = self.args.or(present.args);
        self.agent = self.agent.or(present.agent);
        self
    }

    /// Without what only says that there is none.
    fn plain(mut self) -> WhatArgs {
        self.session = self.session.filter(|session| session != "none");
        self.agent = self.agent.filter(|agent| agent != "default");
        self.formula = self.formula.filter(|formula| formula != "default");
        self.args = self.args.filter(|args| !args.is_empty());
        self
    }

    /// The words of `gt sling` that do it.
    fn sling_words(self) -> Vec<String> {
        let options = [
            ("--new", self.new),
            ("--on", self.on),
            ("--formula", self.formula),
            ("--args", self.args),
            ("--agent", self.agent),
        ];
        let options = options.into_iter().filter_map(|(flag, value)| Some(format!("{flag}={}", value?)));
        self.sling.into_iter().chain(self.rig).chain(options).collect()
    }
}

/// What it is to do; `None`: nothing was said of that.
pub(super) fn payload(args: &WhatArgs, settings: &Settings) -> Result<Option<Payload>, Failure> {
    refuse_misfits(args)?;
    let args = args.clone().plain();
    if let Some(text) = &args.message {
        return message(text, &args, settings).map(Some);
    }
    if let Some(command) = args.run {
        return match command.trim() {
            "" => Err(Failure::new(Kind::Usage, "the command is empty").hint("for example `--run 'make backup'`")),
            _ => Ok(Some(Payload::Run { command })),
        };
    }
    Ok(args.is_sling().then(|| Payload::Sling { words: args.sling_words() }))
}

/// What it is to do from now on; `None`: nothing was said of that. What is not named stays, where it fits.
pub(super) fn changed(args: &WhatArgs, present: &Payload, settings: &Settings) -> Result<Option<Payload>, Failure> {
    if *args == WhatArgs::default() {
        return Ok(None);
    }
    payload(&args.or(WhatArgs::of(present)), settings)
}

/// Each flag has its place.
fn refuse_misfits(args: &WhatArgs) -> Result<(), Failure> {
    let is_sling = args.is_sling();
    let misfits = [
        (args.session.is_some() && args.message.is_none(), "--session", "`--message`"),
        (args.on.is_some() && args.sling.is_empty(), "--on", "`--sling`"),
        (args.rig.is_some() && args.new.is_none(), "--rig", "`--new`"),
        (args.formula.is_some() && !is_sling, "--formula", "`--sling` and `--new`"),
        (args.args.is_some() && !is_sling, "--args", "`--sling` and `--new`"),
        (args.agent.is_some() && args.message.is_none() && !is_sling, "--agent", "`--message`, `--sling` and `--new`"),
    ];
    match misfits.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        Some((_, flag, with)) => {
            Err(Failure::new(Kind::Usage, format!("`{flag}` goes with {with} only")).hint("see `gt cron add --help`"))
        }
        None => Ok(()),
    }
}

fn message(text: &str, args: &WhatArgs, settings: &Settings) -> Result<Payload, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::new(Kind::Usage, "the message is empty").hint("for example `--message 'What is new?'`"));
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(Failure::new(Kind::Usage, format!("the message is longer than {TEXT_BYTES_MAX} bytes")));
    }
    if let Some((key, why)) = args.session.as_deref().and_then(|key| Some((key, flaw_of_key(key)?))) {
        let key = one_line(key);
        return Err(
            Failure::new(Kind::Usage, format!("`{key}` cannot name a session: {why}")).hint("for example `dm:anna`")
        );
    }
    if let Some(agent) = &args.agent {
        find_for_turns(&settings.config, agent).map_err(|why| Failure::new(Kind::Usage, one_line(&why)))?;
    }
    Ok(Payload::Message { text: text.to_owned(), session: args.session.clone(), agent: args.agent.clone() })
}
