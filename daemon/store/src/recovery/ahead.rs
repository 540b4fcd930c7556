//! Work that is done ahead on several threads and taken in order, so that what comes of it does not
//! depend on how many there are.

use std::num::NonZero;
use std::sync::mpsc;
use std::thread;

/// Each thread holds one result until that was taken, and a result may be all of a segment: more
/// threads would take more memory than a small board can spare.
const MOST_THREADS: usize = 3;

/// How many threads are worth it on this machine.
pub(super) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS)
}

/// Does `work` for each item, and hands the results to `take` on this thread, in the order of the
/// items. No more results than threads exist at any time, the one that is taken among them. Nothing
/// begins once `take` has returned an error, which is returned.
///
/// # Panics
/// If `work` does.
pub(super) fn in_order<T: Sync, R: Send, E>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(&T, R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.iter().try_for_each(|item| take(item, work(item)));
    }
    let work = &work;
    thread::scope(|scope| {
        let begin = |first: usize| {
            let (sender, results) = mpsc::sync_channel(0);
            let (taken, was_taken) = mpsc::sync_channel(1);
            scope.spawn(move || {
                for item in items.iter().skip(first).step_by(threads) {
                    if sender.send(work(item)).is_err() || was_taken.recv().is_err() {
                        return;
                    }
                }
            });
            (results, taken)
        };
        let workers: Vec<_> = (0..threads).map(begin).collect();
        for (item, (results, taken)) in items.iter().zip(workers.iter().cycle()) {
            // No result is a panic, which goes on when the scope ends.
            let Ok(result) = results.recv() else { break };
            take(item, result)?;
            let _ = taken.send(());
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_whatever_the_threads() {
        let items: Vec<u64> = (0..100).collect();
        for threads in 0..5 {
            let mut taken = Vec::new();
            let work = |item: &u64| {
                // The later of two neighbours is done first.
                thread::sleep(std::time::Duration::from_micros(200 * (1 - item % 2)));
                item * item
            };
            let done = in_order(&items, threads, work, |item, square| {
                taken.push((*item, square));
                Ok::<_, ()>(())
            });
            assert_eq!(done, Ok(()));
            assert_eq!(taken, items.iter().map(|item| (*item, item * item)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_more_results_exist_than_threads() {
        let (made, items) = (AtomicUsize::new(0), vec![(); 50]);
        let mut taken = 0;
        let work = |(): &()| made.fetch_add(1, Ordering::SeqCst);
        let done = in_order(&items, 3, work, |(), _| {
            thread::sleep(std::time::Duration::from_micros(100));
            let existing = made.load(Ordering::SeqCst) - taken;
            taken += 1;
            if existing > 3 { Err(existing) } else { Ok(()) }
        });
        assert_eq!(done, Ok(()));
    }

    #[test]
    fn an_error_ends_it() {
        let worked = AtomicUsize::new(0);
        let items: Vec<usize> = (0..1000).collect();
        let work = |item: &usize| {
            worked.fetch_add(1, Ordering::SeqCst);
            *item
        };
        let done = in_order(&items, 3, work, |_, item| if item == 5 { Err(item) } else { Ok(()) });
        assert_eq!(done, Err(5));
        assert!(worked.load(Ordering::SeqCst) < 20);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_goes_on() {
        let work = |item: &u8| assert_ne!(*item, 3, "the third");
        let _ = in_order(&[1, 2, 3, 4], 2, work, |_, ()| Ok::<_, ()>(()));
    }
}
