//! Listeners of commits. They come and go while the engine runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use parking_lot::Mutex;

use crate::contained::contain;
use crate::write::command::Event;

type Listener = dyn Fn(&Event) + Send + Sync;

/// The list of listeners. Cloning gives another handle on the same list, so that who must miss nothing
/// can be in it before the engine starts.
#[derive(Clone, Default)]
pub struct Events(Arc<Mutex<Vec<Weak<Listener>>>>);

/// Hears of events until it is dropped; a call that is under way then comes to its end.
#[must_use = "nothing is heard any more once this is dropped"]
pub struct Listening {
    _listener: Arc<Listener>,
}

/// Events in a queue, for a listener that cannot promise to be quick.
pub struct EventQueue {
    events: Receiver<Event>,
    missed: Arc<AtomicU64>,
    _listening: Listening,
}

impl Events {
    /// Calls `listener` for each event from now on, in the order of the commits, on the thread that also gives the
    /// answers: a listener that blocks holds up those of all callers. A panic in it costs it that event.
    pub fn listen(&self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Listening {
        let listener: Arc<Listener> = Arc::new(listener);
        let mut listeners = self.0.lock();
        // Events find out which listeners are gone; without events this does.
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&listener));
        Listening { _listener: listener }
    }

    /// Queues events from now on, at most `most` of them: who is too slow for more misses some, and hears how many.
    pub fn follow(&self, most: usize) -> EventQueue {
        let (queue, events) = bounded(most);
        let missed = Arc::new(AtomicU64::new(0));
        let counter = missed.clone();
        let listening = self.listen(move |event| {
            if queue.try_send(event.clone()).is_err() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        EventQueue { events, missed, _listening: listening }
    }

    /// Tells everybody.
    pub fn announce(&self, event: &Event) {
        let mut listeners = Vec::new();
        self.0.lock().retain(|listener| {
            let listener = listener.upgrade();
            let is_there = listener.is_some();
            listeners.extend(listener);
            is_there
        });
        // Without the lock: a listener may begin or end to listen.
        for listener in listeners {
            // The last of a listener may go here.
            contain("a listener that was told of an event", move || {
                listener(event);
                drop(listener);
            });
        }
    }
}

impl EventQueue {
    /// The next event, if one comes within `patience`.
    pub fn next(&self, patience: Duration) -> Option<Event> {
        self.events.recv_timeout(patience).ok()
    }

    /// Number of events passed over since the last call.
    pub fn missed(&self) -> u64 {
        self.missed.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::event::EventKind;

    fn event(id: &str) -> Event {
        let target = format!("Entity/{id}").parse().unwrap();
        Event { kind: EventKind::Recorded, target, resource: Vec::new(), cause: None, seq: 0 }
    }

    fn names(queue: &EventQueue) -> Vec<String> {
        let next = || queue.next(Duration::ZERO).map(|event| event.target.to_string());
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn who_is_gone_hears_nothing_and_leaves_nothing_behind() {
        let events = Events::default();
        let count = Arc::new(AtomicU64::new(0));
        let listen = || {
            let count = count.clone();
            events.listen(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            })
        };
        let (first, second) = (listen(), listen());
        events.announce(&event("a"));
        drop(first);
        events.announce(&event("b"));
        drop(second);
        events.announce(&event("c"));
        assert_eq!(count.load(Ordering::Relaxed), 3);
        assert_eq!(events.0.lock().len(), 0);
        for _ in 0..3 {
            drop(listen());
        }
        assert_eq!(events.0.lock().len(), 1, "also where nothing happens");
    }

    #[test]
    fn who_is_too_slow_misses_some_and_hears_how_many() {
        let events = Events::default();
        let queue = events.follow(2);
        ["a", "b", "c", "d"].iter().for_each(|id| events.announce(&event(id)));
        assert_eq!(names(&queue), ["Entity/a", "Entity/b"]);
        assert_eq!((queue.missed(), queue.missed()), (2, 0));
        events.announce(&event("e"));
        assert_eq!(names(&queue), ["Entity/e"]);
    }

    #[test]
    fn who_is_told_may_begin_to_listen_and_end_it() {
        let events = Events::default();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (registry, keep) = (events.clone(), kept.clone());
        let _listening = events.listen(move |_| {
            let mut kept = keep.lock();
            kept.clear();
            kept.push(registry.follow(1));
        });
        events.announce(&event("a"));
        events.announce(&event("b"));
        assert_eq!(kept.lock().len(), 1);
    }
}
