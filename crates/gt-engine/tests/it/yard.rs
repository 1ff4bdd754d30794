//! A town with one rig, a real repository, and work that is handed over to the refinery of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gt_core::bead::Bead;
use gt_core::context::SlingFields;
use gt_core::merge::Strategy;
use gt_core::plan::PerSide;
use gt_core::rig::{Rig, RigState};
use gt_core::run::Outcome;
use gt_engine::Town;
use gt_engine::refinery::{self, Worked, ref_of};
use gt_engine::settings::Settings;
use gt_engine::surroundings::Machine;
use gt_store::{
    Claimant, ConvoyWish, Ended, Findings, HandOver, Merge, NewBead, Report, Sling, Stamp, Started, Store, Target,
    TargetHold,
};
use jiff::Timestamp;
use tempfile::TempDir;

pub(crate) struct Yard {
    dir: TempDir,
    pub(crate) town: Town,
    pub(crate) store: Store,
    pub(crate) rig: PathBuf,
    n_merges: usize,
}

pub(crate) fn stamp() -> Stamp {
    Stamp::new(Timestamp::now(), "tester")
}

pub(crate) fn target() -> Target {
    Target { rig: "shop".to_owned(), branch: "main".to_owned() }
}

impl Yard {
    /// A rig `shop` on `main`, with one commit. `config` may use `HOME` for the directory of the yard.
    pub(crate) fn new(config: &str) -> Yard {
        let dir = TempDir::with_prefix("refinery-").expect("a temporary directory can be made");
        let (root, rig) = (dir.path().join("town"), dir.path().join("shop"));
        fs::create_dir(&root).expect("it can be made");
        let (town, _) = Town::init(&root, &stamp()).expect("the directory is empty");
        git(dir.path(), &["init", "--quiet", "-b", "main", "shop"]);
        git(&rig, &["config", "user.email", "test@example.org"]);
        git(&rig, &["config", "user.name", "Test"]);
        commit(&rig, "file", "one\n");
        let config = config.replace("HOME", &dir.path().display().to_string());
        let config = format!("default_agent = \"a\"\n[agents.a]\ncommand = [\"/bin/sh\"]\n{config}");
        fs::write(town.config_path(), config).expect("the town can be written");
        let mut store = Store::open(&town.store_path()).expect("the store is there");
        let known = Rig {
            name: "shop".to_owned(),
            prefix: "gt".to_owned(),
            path: rig.display().to_string(),
            url: None,
            branch: "main".to_owned(),
            state: RigState::Active,
        };
        store.add_rig(&known, &stamp()).expect("it is the first");
        Yard { dir, town, store, rig, n_merges: 0 }
    }

    pub(crate) fn home(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The lines of a file of the yard; none where there is none.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.home(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A bead whose work is a commit of one file, handed over; returns its merge.
    pub(crate) fn handed_over(&mut self, file: &str, text: &str, strategy: Strategy) -> Merge {
        self.n_merges += 1;
        let (id, branch) = (format!("gt-mr-{}", self.n_merges), format!("polecat/Toast/{}", self.n_merges));
        let tree = self.home("tree").display().to_string();
        git(&self.rig, &["worktree", "add", "--quiet", "-b", &branch, &tree, "main"]);
        let tip = commit(Path::new(&tree), file, text);
        git(&self.rig, &["worktree", "remove", "--force", &tree]);
        git(&self.rig, &["update-ref", &ref_of(&id), &tip]);
        let run = self.working(file);
        let merge = HandOver { id: id.clone(), target: "main".to_owned(), branch, tip, strategy, replaces: None };
        let report = Report {
            run: run.clone(),
            outcome: Outcome::Completed,
            note: None,
            cost: None,
            merge: Some(merge),
            tip: None,
        };
        self.store.report(&report, &stamp()).expect("it is taken").expect("it is new");
        self.record(&Findings { ended: vec![ended(&run)], ..Findings::default() });
        self.store.merge(&id).expect("it is known")
    }

    /// A bead that an agent works on; returns its run.
    fn working(&mut self, title: &str) -> String {
        let new = NewBead { prefix: "gt".to_owned(), parent: None, bead: Bead::new("", title) };
        let bead = self.store.create_bead(&new, &stamp()).expect("nothing is wrong with it");
        let sling = Sling {
            beads: vec![bead.clone()],
            rig: None,
            fields: SlingFields::default(),
            force: false,
            convoy: ConvoyWish::No,
            is_batch: false,
            prescriptions: BTreeMap::new(),
        };
        let policy = self.settings().policy(self.town.root());
        let run = format!("run-{}", self.n_merges);
        let mut claimant = Claimant {
            policy: &policy,
            starter: "tester",
            new_run: &mut || run.clone(),
            limits: PerSide::both(Some(1)),
            n_before: 0,
            probe: &|_, _| None,
        };
        let (_, claimed) = self.store.sling(&sling, Some(&mut claimant), &stamp()).expect("nothing is wrong with it");
        assert_eq!(claimed.iter().map(|one| one.bead.as_str()).collect::<Vec<_>>(), [bead.as_str()]);
        self.record(&Findings { started: vec![started(&run)], ..Findings::default() });
        run
    }

    fn record(&mut self, findings: &Findings) {
        let policy = self.settings().policy(self.town.root());
        self.store.advance(findings, &policy, None, &stamp()).expect("it is recorded");
    }

    pub(crate) fn settings(&mut self) -> Settings {
        Settings::load(&self.town, &mut self.store, &*Machine::here()).expect("the config is right")
    }

    /// What the refinery does when it is its turn.
    pub(crate) fn work(&self) -> Worked {
        refinery::work(&Machine::here(), &self.town, "tester", &target()).expect("it works")
    }

    pub(crate) fn merge(&mut self, id: &str) -> Merge {
        self.store.merge(id).expect("it is known")
    }

    pub(crate) fn status(&mut self, bead: &str) -> String {
        self.store.bead(bead).expect("it is there").bead.status.as_str().to_owned()
    }

    pub(crate) fn hold(&mut self) -> Option<TargetHold> {
        self.store.target_hold(&target()).expect("it answers")
    }

    /// The hold on the target is over, as if its time had passed.
    pub(crate) fn pass_hold(&mut self) {
        let hold = self.hold().expect("it is held");
        let now = stamp();
        self.store.hold_target(&target(), &hold.reason, now.now, &now).expect("it is held");
    }

    /// The files of the target, as git has them.
    pub(crate) fn files(&self) -> Vec<String> {
        git(&self.rig, &["ls-tree", "--name-only", "main"]).lines().map(str::to_owned).collect()
    }
}

fn started(run: &str) -> Started {
    Started {
        run: run.to_owned(),
        at: None,
        pid: 1,
        birth: 1,
        branch: None,
        worktree: None,
        log: String::new(),
        formula: None,
        conversation: None,
    }
}

fn ended(run: &str) -> Ended {
    Ended {
        run: run.to_owned(),
        code: Some(0),
        signal: None,
        leftover: 0,
        is_lost: false,
        worktree: None,
        branch: None,
        kept: None,
        patch: None,
        told: None,
        last_output: None,
        reply: None,
        is_conversation_lost: false,
    }
}

pub(crate) fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(dir).args(arguments).output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("git speaks text here").trim().to_owned()
}

pub(crate) fn commit(dir: &Path, file: &str, text: &str) -> String {
    fs::write(dir.join(file), text).expect("it can be written");
    git(dir, &["add", file]);
    git(dir, &["-c", "user.email=test@example.org", "-c", "user.name=Test", "commit", "--quiet", "-m", file]);
    git(dir, &["rev-parse", "HEAD"])
}
