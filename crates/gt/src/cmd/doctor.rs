//! `gt doctor`: what is wrong with the town, and the remedy. // SPEC T6

use std::process::ExitCode;

use clap::Args;
use gt_engine::Town;
use gt_engine::doctor::{self, Finding, Level};
use gt_engine::lock::Lock;
use gt_server::Report;
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{DIM, GREEN, RED, YELLOW, paint};

/// Check the town's health
///
/// Looks at store, readiness, config, rigs, git, tmux, the default agent and the disk, and names the remedy for
/// each finding. Exits with 1 when something is broken.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt doctor
  gt doctor --fix     mend what can be mended safely")]
pub(crate) struct DoctorArgs {
    /// Mend what can be mended safely
    #[arg(long)]
    fix: bool,
}

pub(crate) fn run(context: &Context, args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let town = context.town()?;
    let mut findings = doctor::examine(&town, args.fix && !context.is_dry_run(), &context.stamp());
    findings.extend(server_finding(&town));
    if context.wants_json() {
        context.json(&findings.iter().map(finding_json).collect::<Vec<_>>())?;
    } else {
        for finding in &findings {
            context.say(&finding_text(finding))?;
        }
    }
    let is_broken = findings.iter().any(|finding| finding.level == Level::Broken);
    Ok(if is_broken { Kind::Refused.exit_code() } else { ExitCode::SUCCESS })
}

/// What hinders the server of the daemon that runs.
fn server_finding(town: &Town) -> Option<Finding> {
    let holder = Lock::Daemon.holder(town).ok()??;
    let error = Report::read(town).filter(|report| Some(report.pid) == holder.pid)?.error?;
    Some(Finding {
        check: "server",
        level: Level::Warning,
        message: format!("the daemon answers no HTTP requests: {error}"),
        remedy: Some("`gt config set server.bind 127.0.0.1:7778`, then `gt daemon restart`".to_owned()),
        fixed: false,
    })
}

fn finding_json(finding: &Finding) -> serde_json::Value {
    json!({
        "check": finding.check,
        "level": finding.level.as_str(),
        "message": finding.message,
        "remedy": finding.remedy,
        "fixed": finding.fixed,
    })
}

fn finding_text(finding: &Finding) -> String {
    let sign = match finding.level {
        Level::Ok => paint(GREEN, "✓"),
        Level::Warning => paint(YELLOW, "!"),
        Level::Broken => paint(RED, "✗"),
    };
    let remedy = finding.remedy.as_ref().map(|remedy| format!("\n    {}", paint(DIM, &format!("→ {remedy}"))));
    let fixed = if finding.fixed { "mended: " } else { "" };
    format!("{sign} {:<10} {fixed}{}{}", finding.check, finding.message, remedy.unwrap_or_default())
}
