//! Running a part of a test as a user whom permissions of files hold for, also where the tests run as root.

use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};

/// Runs it in a thread that may not ignore permissions of files, and neither may the programs that it starts.
pub(super) fn without_privileges(run: impl FnOnce() + Send) {
    let ignoring = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    let drop_and_run = || {
        let mut own = capabilities(None).unwrap();
        if own.effective.intersects(ignoring) {
            for capability in ignoring.iter() {
                remove_capability_from_bounding_set(capability).unwrap();
            }
            own.effective.remove(ignoring);
            own.permitted.remove(ignoring);
            own.inheritable.remove(ignoring);
            set_capabilities(None, own).unwrap();
        }
        run();
    };
    let ended = std::thread::scope(|scope| scope.spawn(drop_and_run).join());
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}
