//! A town of an older version, upgraded in place: the fixture in `upgrade/`, with its agents at work.
//!
//! The daemon and the keeper of the old version are gone, as after a restart of the machine's services; the agents are
//! started here as the old keeper did, and live on.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::fleet::Fleet;
use crate::town::GT;

#[path = "upgrade/goes_on.rs"]
mod goes_on;

use goes_on::goes_on;

const STORE: &str = include_str!("upgrade/town-0.1.0.sql");
const CONFIG: &str = include_str!("upgrade/town.toml");
const MAKE: &str = include_str!("upgrade/make.sh");
const RIGS: [(&str, &str); 2] =
    [("shop", include_str!("upgrade/shop.fast-export")), ("site", include_str!("upgrade/site.fast-export"))];

/// A town as 0.1.0 left it, and the agents that it had started.
struct Old {
    fleet: Fleet,
    agents: Vec<Child>,
}

impl Old {
    fn new() -> Old {
        let fleet = Fleet::unmade();
        let home = fleet.town.home().display().to_string();
        for (rig, history) in RIGS {
            lay_out_rig(&fleet, rig, history);
        }
        for script in ["agent.sh", "turn.sh"] {
            fs::write(fleet.home(script), script_of(script)).expect("the home can be written");
        }
        fleet.town.git(&["config", "--global", "user.name", "ada"]);
        fleet.town.git(&["config", "--global", "user.email", "ada@example.org"]);
        fs::create_dir_all(fleet.town.path(".gt/logs")).expect("the town can be written");
        fleet.town.write("town.toml", crate::fleet::NO_GUARDS.to_owned() + &CONFIG.replace("[HOME]", &home));
        let store = rusqlite::Connection::open(fleet.town.store()).expect("it can be made");
        let host = gt_engine::settings::host();
        store.execute_batch(&STORE.replace("[HOME]", &home).replace("[HOST]", &host)).expect("it is SQL");
        drop(store);
        lay_out_worktrees(&fleet);
        let mut old = Old { fleet, agents: Vec::new() };
        old.start_agents();
        old
    }

    /// The agents as the old keeper started them.
    fn start_agents(&mut self) {
        let town = self.fleet.town.root().display().to_string();
        let keeper = format!("{town}/.gt/keeper");
        let store = rusqlite::Connection::open(self.fleet.town.store()).expect("the store is there");
        let sql = "SELECT run.id, coalesce(bead.id, ''), polecat, coalesce(worktree, ''), log, coalesce(branch, '')
             FROM run LEFT JOIN bead ON bead.key = run.bead WHERE run.state = 'working'";
        let mut query = store.prepare(sql).expect("it is SQL");
        let text = |row: &rusqlite::Row<'_>, at| row.get::<_, String>(at).expect("it is a text");
        let rows = query.query_map([], |row| Ok([0, 1, 2, 3, 4, 5].map(|at| text(row, at)))).expect("it is SQL");
        let rows: Vec<[String; 6]> = rows.map(|row| row.expect("it is a row")).collect();
        assert_eq!(rows.len(), 3, "two beads and a turn are under way");
        for [run, bead, polecat, worktree, log, branch] in rows {
            let is_turn = bead.is_empty();
            let mut agent = self.fleet.town.command("bash");
            let directory = Path::new(GT).parent().expect("it is in a directory").display().to_string();
            agent.env("PATH", format!("{directory}:{}", std::env::var("PATH").expect("there is a PATH")));
            agent.envs([("GT_RUN", &run), ("GT_KEEPER", &keeper), ("GT_TOWN", &town)]);
            let mut input = Stdio::null();
            if is_turn {
                agent.arg(self.fleet.home("turn.sh")).env("GT_SESSION", "dm:anna");
                fs::write(self.fleet.home("input"), "first\n").expect("the home can be written");
                input = fs::File::open(self.fleet.home("input")).expect("it was just written").into();
            } else {
                agent.arg(self.fleet.home("agent.sh")).current_dir(worktree);
                agent.envs([("GT_BEAD", &bead), ("GT_POLECAT", &polecat), ("GT_BRANCH", &branch)]);
                agent.envs([("GT_RIG", "shop"), ("GT_ACTOR", &format!("shop/polecats/{polecat}"))]);
            }
            let output = fs::File::create(&log).expect("the logs have a directory");
            let errors = output.try_clone().expect("it can be cloned");
            agent.stdin(input).stdout(output).stderr(errors).process_group(0);
            let agent = agent.spawn().expect("bash is installed");
            let birth = birth(agent.id());
            store.execute("UPDATE run SET pid = ?2, birth = ?3 WHERE id = ?1", (&run, agent.id(), birth)).expect("SQL");
            self.agents.push(agent);
        }
    }
}

impl Drop for Old {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            agent.kill().unwrap_or_default();
            agent.wait().expect("it is a child");
        }
    }
}

/// What make.sh writes into a file.
fn script_of(name: &str) -> &str {
    let (_, after) = MAKE.split_once(&format!("cat > ../{name} <<'A'\n")).expect("make.sh writes it");
    after.split_once("\nA\n").expect("it ends").0
}

/// A repository with the history of the fixture.
fn lay_out_rig(fleet: &Fleet, rig: &str, history: &str) {
    let path = format!("../{rig}");
    fleet.town.git(&["init", "--quiet", "--initial-branch=main", &path]);
    fs::write(fleet.home("history"), history).expect("the home can be written");
    let mut import = fleet.town.command("git");
    import.args(["-C", &path, "fast-import", "--quiet"]);
    let status = import.stdin(fs::File::open(fleet.home("history")).expect("it was just written")).status();
    assert!(status.expect("git is installed").success());
    fleet.town.git(&["-C", &path, "reset", "--quiet", "--hard", "main"]);
}

/// The worktrees of the agents, and what a person has changed in a checkout.
fn lay_out_worktrees(fleet: &Fleet) {
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store is there");
    let mut query = store.prepare("SELECT rig, worktree, branch FROM polecat").expect("it is SQL");
    let rows = query.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).expect("it is SQL");
    for row in rows {
        let [rig, worktree, branch]: [String; 3] = row.expect("it is a row");
        fleet.town.git(&["-C", &format!("../{rig}"), "worktree", "add", "--quiet", &worktree, &branch]);
    }
    fs::write(fleet.home("site/notes.txt"), "mine\n").expect("the home can be written");
    fleet.town.git(&["-C", "../site", "add", "notes.txt"]);
}

/// When a process was started, as the kernel counts.
fn birth(pid: u32) -> i64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let (_, fields) = stat.rsplit_once(')').expect("it has a name");
    fields.split_ascii_whitespace().nth(19).expect("it has a birth").parse().expect("it is a number")
}

#[test]
fn a_town_of_0_1_0_goes_on_where_it_was() {
    let old = Old::new();
    let fleet = &old.fleet;
    let shown = fleet.town.gt(["status"]);
    shown.success();
    for words in ["New defaults, shown once (2)", "guards.max_agents", "rigs.NAME.push"] {
        assert!(shown.stdout.contains(words), "{words}: {shown}");
    }
    assert!(!fleet.town.gt(["status"]).success().stdout.contains("New defaults"), "it is shown once");
    fleet.town.gt(["doctor"]).success();

    fleet.start_daemon();
    goes_on(fleet);
}

#[test]
fn an_older_gt_refuses_a_newer_town_with_what_to_do() {
    let old = Old::new();
    let town = &old.fleet.town;
    town.gt(["status"]).success();
    let store = rusqlite::Connection::open(town.store()).expect("the store is there");
    let newest: i64 = store.pragma_query_value(None, "user_version", |row| row.get(0)).expect("it answers");
    assert!(newest > 12, "it was upgraded");
    store.pragma_update(None, "user_version", newest + 1).expect("it is set");
    drop(store);
    let refused = town.gt(["status"]);
    assert_eq!(refused.code, 4, "{refused}");
    for words in ["was written by a newer gt", "nothing was changed"] {
        assert!(refused.stderr.contains(words), "{refused}");
    }
}
