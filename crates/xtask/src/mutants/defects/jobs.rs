//! What can be wrong with jobs: with their slots, with what was missed, with retries, and with a clock that is set. They are
//! looked for in towns of jobs.

use super::{DAEMON, Defect, Edit};

const CORE_JOB: &str = "crates/gt-core/src/job.rs";
const SLOTS: &str = "crates/gt-core/src/job/slots.rs";
const JOBS: &str = "crates/gt-store/src/jobs.rs";
const FIRE: &str = "crates/gt-store/src/jobs/fire.rs";
const HEED: &str = "crates/gt-store/src/jobs/heed.rs";
const RECORD: &str = "crates/gt-store/src/jobs/record.rs";
const SETTLE: &str = "crates/gt-store/src/jobs/settle.rs";
const TURNS: &str = "crates/gt-store/src/sessions/claim.rs";
const CLOCK: &str = "crates/gt-engine/src/daemon/clock.rs";
const SETTINGS: &str = "crates/gt-engine/src/settings.rs";

pub(super) const DEFECTS: &[Defect] = &[
    Defect {
        name: "missed-unrecorded",
        what: "A slot that was missed and is not made up for has no record.",
        edits: &[Edit {
            file: FIRE,
            from: r"Fate::Missed(why) => self.leave_out(",
            to: r#"Fate::Missed(_) if crate::defect("missed-unrecorded") => {}
                Fate::Missed(why) => self.leave_out("#,
        }],
    },
    Defect {
        name: "late-run-unexplained",
        what: "A slot that was missed and runs late has no record that it was missed.",
        edits: &[Edit {
            file: FIRE,
            from: r"self.leave_out(job, slot, FireStatus::Missed, &why)?;",
            to: r#"if !crate::defect("late-run-unexplained") {
                        self.leave_out(job, slot, FireStatus::Missed, &why)?;
                    }"#,
        }],
    },
    Defect {
        name: "skip-runs-late",
        what: "A job that skips missed slots runs them all the same.",
        edits: &[Edit {
            file: SLOTS,
            from: r#"Missed::Skip => missed(""),"#,
            to: r#"Missed::Skip if crate::defect("skip-runs-late") => late(),
        Missed::Skip => missed(""),"#,
        }],
    },
    Defect {
        name: "once-runs-the-oldest",
        what: "Of the slots that were missed the oldest runs late, not the newest.",
        edits: &[Edit {
            file: SLOTS,
            from: r"Missed::Once if n_left > 1 =>",
            to: r#"Missed::Once if n_left > 1 && !crate::defect("once-runs-the-oldest") =>"#,
        }],
    },
    Defect {
        name: "grace-ignored",
        what: "A missed slot runs however late it is.",
        edits: &[Edit {
            file: SLOTS,
            from: r"|grace| watch.now.duration_since(slot) > *grace",
            to: r#"|grace| watch.now.duration_since(slot) > *grace && !crate::defect("grace-ignored")"#,
        }],
    },
    Defect {
        name: "all-runs-the-newest",
        what: "A job that makes up for every missed slot does so for the newest only.",
        edits: &[Edit {
            file: SLOTS,
            from: r"Missed::All if n_left > CATCH_UP_MAX =>",
            to: r#"Missed::All if n_left > 1 && crate::defect("all-runs-the-newest") => missed(""),
        Missed::All if n_left > CATCH_UP_MAX =>"#,
        }],
    },
    Defect {
        name: "busy-job-fires",
        what: "A slot fires though the run of the one before is not over.",
        edits: &[Edit {
            file: SLOTS,
            from: r"Some(slot) if !may_wait =>",
            to: r#"Some(slot) if !may_wait && !crate::defect("busy-job-fires") =>"#,
        }],
    },
    Defect {
        name: "run-by-hand-beside-itself",
        what: "Somebody can run a job that runs already.",
        edits: &[Edit {
            file: FIRE,
            from: r"if unfinished(tx, job.id)?.is_some() && !job.plan.may_overlap {",
            to: r#"if unfinished(tx, job.id)?.is_some() && !job.plan.may_overlap && !crate::defect("run-by-hand-beside-itself") {"#,
        }],
    },
    Defect {
        name: "changed-job-runs-beside-itself",
        what: "A job that may not run beside itself any more does, if it could when it was started.",
        edits: &[Edit {
            file: FIRE,
            from: r"Ok(tx.prepare_cached(sql)?.exists([turn])?)",
            to: r#"Ok(!crate::defect("changed-job-runs-beside-itself") && tx.prepare_cached(sql)?.exists([turn])?)"#,
        }],
    },
    Defect {
        name: "lane-overfull",
        what: "The lane of jobs takes more runs than it has places.",
        edits: &[Edit {
            file: TURNS,
            from: r"self.active.get(lane).copied().unwrap_or(0) < self.lanes.limit(lane)",
            to: r#"crate::defect("lane-overfull") || self.active.get(lane).copied().unwrap_or(0) < self.lanes.limit(lane)"#,
        }],
    },
    Defect {
        name: "slots-drift",
        what: "The next slot of a job is counted from when the last one fired.",
        edits: &[Edit {
            file: FIRE,
            from: r"let next = job.plan.schedule.next(self.stamp.now, zone)?;",
            to: r#"let next = match &job.plan.schedule {
            Schedule::Every { span, .. } if crate::defect("slots-drift") => self.stamp.now + *span,
            schedule => schedule.next(self.stamp.now, zone)?,
        };"#,
        }],
    },
    Defect {
        name: "slot-deadline-forgotten",
        what: "The daemon does not wake up for the next slot.",
        edits: &[Edit {
            file: DAEMON,
            from: r"self.store.next_job_at()?,",
            to: r#"self.store.next_job_at()?.filter(|_| !crate::defect("slot-deadline-forgotten")),"#,
        }],
    },
    Defect {
        name: "job-retry-deadline-forgotten",
        what: "The daemon does not wake up for what is to be tried again.",
        edits: &[Edit {
            file: JOBS,
            from: r"let at: Option<i64> = tx.prepare_cached(sql)?",
            to: r#"let sql = match crate::defect("job-retry-deadline-forgotten") {
                true => "SELECT min(next_at) FROM job WHERE next_at IS NOT NULL",
                false => sql,
            };
            let at: Option<i64> = tx.prepare_cached(sql)?"#,
        }],
    },
    Defect {
        name: "retry-pause-never-grows",
        what: "However often something has failed, it is tried again after the same short time.",
        edits: &[Edit {
            file: SETTLE,
            from: r"let n = u32::try_from(fire.attempt - 1).unwrap_or(0);",
            to: r#"let n = u32::try_from(fire.attempt - 1).unwrap_or(0) * u32::from(!crate::defect("retry-pause-never-grows"));"#,
        }],
    },
    Defect {
        name: "retries-never-used-up",
        what: "A slot is tried again however often it has failed.",
        edits: &[Edit {
            file: SETTLE,
            from: r"if fire.attempt > fire.retries ||",
            to: r#"if (fire.attempt > fire.retries && !crate::defect("retries-never-used-up")) ||"#,
        }],
    },
    Defect {
        name: "retry-not-noted",
        what: "That something is being tried again is not noted, so the next pass does it once more.",
        edits: &[Edit {
            file: FIRE,
            from: r#"let sql = "UPDATE fire SET retry_at = NULL, attempt = ?2, turn = NULL WHERE id = ?1";"#,
            to: r#"let sql = match crate::defect("retry-not-noted") {
                        true => "UPDATE fire SET attempt = ?2, turn = NULL WHERE id = ?1",
                        false => "UPDATE fire SET retry_at = NULL, attempt = ?2, turn = NULL WHERE id = ?1",
                    };"#,
        }],
    },
    Defect {
        name: "killed-attempt-given-up",
        what: "An attempt that was killed is not made again.",
        edits: &[Edit {
            file: CORE_JOB,
            from: r"_ if is_lasting => false,",
            to: r#"Some(Outcome::Died | Outcome::Lost) if crate::defect("killed-attempt-given-up") => false,
            _ if is_lasting => false,"#,
        }],
    },
    Defect {
        name: "timeout-tried-again",
        what: "A run that has used up its time is made again.",
        edits: &[
            Edit {
                file: CORE_JOB,
                from: r"None | Some(Outcome::TimedOut | Outcome::Stopped) => false,",
                to: r#"Some(Outcome::TimedOut) if crate::defect("timeout-tried-again") => true,
            None | Some(Outcome::TimedOut | Outcome::Stopped) => false,"#,
            },
            Edit {
                file: SETTLE,
                from: r"if status == FireStatus::Failed && is_tried_again(",
                to: r#"let is_failed = status == FireStatus::Failed
        || (status == FireStatus::Timeout && crate::defect("timeout-tried-again"));
    if is_failed && is_tried_again("#,
            },
        ],
    },
    Defect {
        name: "timeout-never-over",
        what: "The time of a run of a job is never over.",
        edits: &[Edit {
            file: SETTINGS,
            from: r"Some(turn) => turn.timeout.or(self.turn_timeout),",
            to: r#"Some(_) if crate::defect("timeout-never-over") => None,
            Some(turn) => turn.timeout.or(self.turn_timeout),"#,
        }],
    },
    Defect {
        name: "failed-one-shot-forgotten",
        what: "A job that runs once is forgotten though it failed.",
        edits: &[Edit {
            file: SETTLE,
            from: r"FireStatus::Ok => forget(tx, &job, stamp),",
            to: r#"_ if crate::defect("failed-one-shot-forgotten") => forget(tx, &job, stamp),
            FireStatus::Ok => forget(tx, &job, stamp),"#,
        }],
    },
    Defect {
        name: "disabled-untold",
        what: "Nobody is written to when a job is disabled.",
        edits: &[Edit {
            file: SETTLE,
            from: r"mail::put(tx, &letter, stamp)?;
    notices::put(",
            to: r#"if !crate::defect("disabled-untold") {
        mail::put(tx, &letter, stamp)?;
    }
    notices::put("#,
        }],
    },
    Defect {
        name: "paused-job-fires",
        what: "The slots of a job that is paused still fire.",
        edits: &[Edit {
            file: JOBS,
            from: r"(job.state, job.next_at, job.why) = (JobState::Paused, None, None);",
            to: r#"let next_at = job.next_at.filter(|_| crate::defect("paused-job-fires"));
        (job.state, job.next_at, job.why) = (JobState::Paused, next_at, None);"#,
        }],
    },
    Defect {
        name: "paused-job-starts",
        what: "What a job had waiting when it was paused is started all the same.",
        edits: &[Edit {
            file: JOBS,
            from: r#"settle::give_up_waiting(tx, job.id, "its job was paused", stamp)?;"#,
            to: r#"if !crate::defect("paused-job-starts") {
            settle::give_up_waiting(tx, job.id, "its job was paused", stamp)?;
        }"#,
        }],
    },
    Defect {
        name: "clock-ahead-unnoticed",
        what: "The daemon does not notice that the clock was set forward.",
        edits: &[
            Edit {
                file: CLOCK,
                from: r"if self.looked.jump(look) > GAP {",
                to: r#"if self.looked.jump(look) > GAP && !crate::defect("clock-ahead-unnoticed") {"#,
            },
            Edit {
                file: CLOCK,
                from: r"self.watching_since = look.now;",
                to: r#"if !crate::defect("clock-ahead-unnoticed") {
                self.watching_since = look.now;
            }"#,
            },
        ],
    },
    Defect {
        name: "downtime-unnoticed",
        what: "A daemon that starts does not know that nobody watched the clock before.",
        edits: &[Edit {
            file: DAEMON,
            from: r"let next_patrol = watching_since + settings.heartbeat;",
            to: r#"let next_patrol = watching_since + settings.heartbeat;
        let is_unnoticed = crate::defect("downtime-unnoticed");
        let watching_since = if is_unnoticed { Timestamp::UNIX_EPOCH } else { watching_since };"#,
        }],
    },
    Defect {
        name: "retry-waits-for-the-clock",
        what: "A clock that was set back holds up what is to be tried again until it has caught up.",
        edits: &[Edit {
            file: HEED,
            from: r"bring_forward(tx, set_back, stamp.now, ahead)?;",
            to: r#"if !crate::defect("retry-waits-for-the-clock") {
                bring_forward(tx, set_back, stamp.now, ahead)?;
            }"#,
        }],
    },
    Defect {
        name: "jobs-wait-for-the-clock",
        what: "A clock that was set back by a day silences jobs until it has caught up.",
        edits: &[Edit {
            file: HEED,
            from: r"Ok((stray(tx, ahead)?, is_any_waiting(tx, from)?))",
            to: r#"Ok((
            if crate::defect("jobs-wait-for-the-clock") { Vec::new() } else { stray(tx, ahead)? },
            is_any_waiting(tx, from)?,
        ))"#,
        }],
    },
    Defect {
        name: "ahead-counts-as-missed",
        what: "What a clock that was ahead has left out stays so when it comes.",
        edits: &[Edit {
            file: FIRE,
            from: r"if job.peak_at > stamp.now {",
            to: r#"if job.peak_at > stamp.now && !crate::defect("ahead-counts-as-missed") {"#,
        }],
    },
    Defect {
        name: "peak-forgotten",
        what: "What a clock that was wrong for a while brings once more is seen to again.",
        edits: &[Edit {
            file: RECORD,
            from: r"if is_once || first > job.peak_at ||",
            to: r#"if is_once || crate::defect("peak-forgotten") || first > job.peak_at ||"#,
        }],
    },
];
