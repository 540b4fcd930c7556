//! The thread that looks for patterns after errors were recorded: not in the call that records one, and once for all that come
//! together.

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::failure::Failure;
use crate::methods::patterns::{LEAST_OFTEN, Look, Scope};
use crate::names::Sort;
use crate::queues::patterns::{PatternQueue, Recorded};
use crate::shared::Shared;
use crate::state::Task;
use crate::store::{Store, retried};

/// The pause after an error, in which more may come.
const PAUSE: Duration = Duration::from_millis(300);
/// A known pattern is written again once it has a quarter more errors: each time would wear the card.
const GROWN: f64 = 1.25;

/// Starts the thread. It ends once the way to it is dropped.
pub(crate) fn start(shared: &Arc<Shared>) -> PatternQueue {
    let (queue, told) = PatternQueue::new();
    let shared = Arc::downgrade(shared);
    let thread = std::thread::Builder::new().name("omird-cp-watch".into());
    if let Err(error) = thread.spawn(move || run(&shared, &told)) {
        tracing::error!(%error, "there is no thread that looks for patterns; ask for them");
    }
    queue
}

fn run(shared: &Weak<Shared>, told: &Receiver<Recorded>) {
    while let Ok(first) = told.recv() {
        std::thread::sleep(PAUSE);
        let tasks: BTreeSet<Recorded> = std::iter::once(first).chain(told.try_iter()).collect();
        for (tenant, task) in tasks {
            let Some(shared) = shared.upgrade() else { return };
            if let Err(failure) = look(&shared, &tenant, &task) {
                let error = failure.error.message;
                tracing::debug!(error, "patterns among errors could not be looked for");
            }
        }
    }
}

/// Looks for patterns among the errors of a task, keeps them, and tells of new ones.
fn look(shared: &Shared, tenant: &str, task: &str) -> Result<(), Failure> {
    let settings = shared.settings();
    if !settings.error_pattern_detection_enabled || shared.engine.settings().read_only {
        return Ok(());
    }
    let store = Store::new(&shared.engine, tenant);
    let Some(task) = store.get::<Task>(Sort::Task, task)? else { return Ok(()) };
    let scope = Scope::of_task(&store, task.state)?;
    let lookback = settings.error_history_lookback_stages;
    let look = Look { lookback, least: LEAST_OFTEN, wanted: &[], grown: GROWN };
    let found = retried(|| {
        let mut found = look.among(&store, &scope)?;
        if !found.batch.is_empty() {
            shared.commit(&store, std::mem::take(&mut found.batch))?;
        }
        Ok(found)
    })?;
    let (now, _) = store.now();
    let signals = found.signals(&store, &scope, LEAST_OFTEN, now)?;
    signals.iter().for_each(|signal| shared.announcer.tell(signal));
    Ok(())
}
