//! What can be wrong with jobs: their slots, missed slots, retries, and a clock that is set.

use super::Defect;
use super::Towns::Jobs;

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(Jobs, "missed-unrecorded", "A slot that was missed and is not made up for has no record."),
    Defect::new(Jobs, "late-run-unexplained", "A slot that was missed and runs late has no record that it was missed."),
    Defect::new(Jobs, "skip-runs-late", "A job that skips missed slots runs them all the same."),
    Defect::new(Jobs, "once-runs-the-oldest", "Of the slots that were missed the oldest runs late, not the newest."),
    Defect::new(Jobs, "grace-ignored", "A missed slot runs however late it is."),
    Defect::new(Jobs, "all-runs-the-newest", "A job that makes up for every missed slot does so for the newest only."),
    Defect::new(Jobs, "busy-job-fires", "A slot fires though the run of the one before is not over."),
    Defect::new(Jobs, "run-by-hand-beside-itself", "Somebody can run a job that runs already."),
    Defect::new(
        Jobs,
        "changed-job-runs-beside-itself",
        "A job that may not run beside itself any more does, if it could when it was started.",
    ),
    Defect::new(Jobs, "lane-overfull", "The lane of jobs takes more runs than it has places."),
    Defect::new(Jobs, "slots-drift", "The next slot of a job is counted from when the last one fired."),
    Defect::new(Jobs, "slot-deadline-forgotten", "The daemon does not wake up for the next slot."),
    Defect::new(Jobs, "job-retry-deadline-forgotten", "The daemon does not wake up for what is to be tried again."),
    Defect::new(
        Jobs,
        "retry-pause-never-grows",
        "However often something has failed, it is tried again after the same short time.",
    ),
    Defect::new(Jobs, "retries-never-used-up", "A slot is tried again however often it has failed."),
    Defect::new(
        Jobs,
        "retry-not-noted",
        "That something is being tried again is not noted, so the next pass does it once more.",
    ),
    Defect::new(Jobs, "killed-attempt-given-up", "An attempt that was killed is not made again."),
    Defect::new(Jobs, "timeout-tried-again", "A run that has used up its time is made again."),
    Defect::new(Jobs, "timeout-never-over", "The time of a run of a job is never over."),
    Defect::new(Jobs, "failed-one-shot-forgotten", "A job that runs once is forgotten though it failed."),
    Defect::new(Jobs, "disabled-untold", "Nobody is written to when a job is disabled."),
    Defect::new(Jobs, "paused-job-fires", "The slots of a job that is paused still fire."),
    Defect::new(Jobs, "paused-job-starts", "What a job had waiting when it was paused is started all the same."),
    Defect::new(Jobs, "clock-ahead-unnoticed", "The daemon does not notice that the clock was set forward."),
    Defect::new(Jobs, "downtime-unnoticed", "A daemon that starts does not know that nobody watched the clock before."),
    Defect::new(
        Jobs,
        "retry-waits-for-the-clock",
        "A clock that was set back holds up what is to be tried again until it has caught up.",
    ),
    Defect::new(
        Jobs,
        "jobs-wait-for-the-clock",
        "A clock that was set back by a day silences jobs until it has caught up.",
    ),
    Defect::new(Jobs, "ahead-counts-as-missed", "What a clock that was ahead has left out stays so when it comes."),
    Defect::new(Jobs, "peak-forgotten", "What a clock that was wrong for a while brings once more is seen to again."),
];
