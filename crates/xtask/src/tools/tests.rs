//! Cases for the table of tools and for the choice of the install command; nothing is run here.

use super::*;

const GIT: Tool = Tool { program: "git", need: Need::Required, packages: Packages::everywhere("git") };

/// States managers on the PATH and rights, and what then happens for a missing git.
fn check(present: &[Manager], rights: Rights, expected: &str) {
    let actual = match remedy(&[&GIT], present, rights) {
        Remedy::Install(commands) => format!("run {}", one_line(&commands)),
        Remedy::Advise(commands) => format!("say {}", one_line(&commands)),
        Remedy::NoManager => "no manager".to_owned(),
    };
    assert_eq!(actual, expected);
}

#[test]
fn every_tool_has_a_package_for_every_manager() {
    for tool in TOOLS {
        for manager in Manager::ALL {
            let name = tool.packages.name(manager);
            let is_one_word = !name.is_empty() && !name.contains(char::is_whitespace);
            assert!(is_one_word, "`{}` has no package for {manager:?}", tool.program);
        }
    }
}

#[test]
fn every_manager_names_its_packages_in_the_last_command() {
    for manager in Manager::ALL {
        let lines = command_lines(manager, Rights::Root, &[&GIT]);
        assert_eq!(lines.last().and_then(|line| line.last()), Some(&"git"), "{manager:?}");
    }
}

#[test]
fn root_installs_at_once() {
    check(&[Manager::AptGet], Rights::Root, "run apt-get update && apt-get install --yes --no-install-recommends git");
    check(&[Manager::Dnf], Rights::Root, "run dnf install --assumeyes git");
    check(&[Manager::Pacman], Rights::Root, "run pacman -S --needed --noconfirm git");
    check(&[Manager::Apk], Rights::Root, "run apk add --no-cache git");
    check(&[Manager::Zypper], Rights::Root, "run zypper --non-interactive install git");
}

#[test]
fn sudo_without_a_password_is_used_for_every_step() {
    check(
        &[Manager::AptGet],
        Rights::Sudo,
        "run sudo -n apt-get update && sudo -n apt-get install --yes --no-install-recommends git",
    );
}

#[test]
fn a_password_is_never_asked_for() {
    check(&[Manager::Dnf], Rights::User, "say sudo dnf install --assumeyes git");
}

#[test]
fn brew_runs_as_the_user_and_never_as_root() {
    check(&[Manager::Brew], Rights::User, "run brew install git");
    check(&[Manager::Brew], Rights::Sudo, "run brew install git");
    check(&[Manager::Brew], Rights::Root, "say brew install git");
}

#[test]
fn a_manager_that_need_not_ask_goes_before_one_that_must() {
    check(&[Manager::Apk, Manager::Brew], Rights::User, "run brew install git");
    check(&[Manager::Apk, Manager::Brew], Rights::Root, "run apk add --no-cache git");
}

#[test]
fn no_manager_is_a_case_of_its_own() {
    check(&[], Rights::Root, "no manager");
}

#[test]
fn a_package_that_brings_two_programs_is_named_once() {
    let tools: Vec<&Tool> = TOOLS.iter().collect();
    assert_eq!(packages(Manager::AptGet, &tools), ["git", "bash", "tmux", "faketime", "bsdutils", "util-linux"]);
}
