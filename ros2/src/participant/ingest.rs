//! Messages in, memories out: the rules, the transforms, and what waits for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::message::Message;
use crate::rules::{Arrival, Decision, KeptResource, Rules, UnreportedSightings, Wait};
use crate::stamp::Stamp;
use crate::tf::Buffer;

/// A transform that should be there and is not is looked for again after this time, not with every other.
const AGAIN: Duration = Duration::from_millis(20);
/// Most messages that wait for their transform, and most bytes of them as they came; beyond it the oldest
/// goes on without one.
const MOST_WAITING: usize = 1000;
const MOST_BYTES: usize = 16 << 20;

/// The state of all that is observed.
#[derive(Debug)]
pub(super) struct Ingest {
    pub(super) rules: Rules,
    waiting: VecDeque<Waiting>,
    /// Of those that wait.
    bytes: usize,
    /// Number of reported types that do not fit their rules.
    misfits: usize,
    patience: Duration,
}

/// A message whose place is not known yet.
#[derive(Debug)]
struct Waiting {
    wait: Wait,
    message: Arc<Observed>,
}

/// A message, and its way here.
#[derive(Debug)]
pub(super) struct Observed {
    /// As the rules call it.
    pub(super) topic: String,
    /// The publisher, as far as it is known.
    pub(super) node: Option<String>,
    /// Time at which it came.
    pub(super) received: Stamp,
    /// True if it was published just then.
    pub(super) is_live: bool,
    /// The message.
    pub(super) message: Message,
    /// Bytes it took on its way.
    pub(super) size: usize,
}

impl Observed {
    fn arrival(&self) -> Arrival<'_> {
        let Self { topic, node, received, is_live, .. } = self;
        Arrival { topic, node: node.as_deref(), received: *received, is_live: *is_live }
    }
}

impl Ingest {
    /// With rules, where a message waits for its transform at most `patience`.
    pub(super) fn new(rules: Rules, patience: Duration) -> Self {
        Self { rules, waiting: VecDeque::new(), bytes: 0, misfits: 0, patience }
    }

    /// The memories to be made of a message.
    pub(super) fn observe(&mut self, observed: Observed, tf: &Buffer) -> Vec<KeptResource> {
        let decisions = self.rules.observe(&observed.arrival(), &observed.message, tf);
        let received = observed.received;
        let kept = self.sort(decisions, &Arc::new(observed), received);
        self.make_room(kept, tf)
    }

    /// Those that wait longest go on as they are, if too many wait.
    fn make_room(&mut self, mut kept: Vec<KeptResource>, tf: &Buffer) -> Vec<KeptResource> {
        while self.waiting.len() > MOST_WAITING || self.bytes > MOST_BYTES {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.bytes -= oldest.message.size;
            let received = oldest.message.received;
            kept.extend(self.retry(oldest, tf, true, received));
        }
        kept
    }

    /// Lets wait what must, until `soonest` at least, and gives what is to be kept.
    fn sort(
        &mut self,
        decisions: Vec<Decision>,
        message: &Arc<Observed>,
        soonest: Stamp,
    ) -> Vec<KeptResource> {
        let mut kept = Vec::new();
        for decision in decisions {
            match decision {
                Decision::Keep(keep) => kept.push(*keep),
                Decision::Merged { .. } | Decision::Dropped(_) | Decision::Beyond(_) => {}
                Decision::Wait(mut wait) => {
                    wait.expected = wait.expected.max(soonest);
                    self.bytes += message.size;
                    self.waiting.push_back(Waiting { wait, message: message.clone() });
                }
            }
        }
        kept
    }

    /// Decides what can be decided by now of the waiting messages; all of it, if there will be no other time.
    pub(super) fn go_on(&mut self, now: Stamp, tf: &Buffer, all: bool) -> Vec<KeptResource> {
        let mut kept = Vec::new();
        self.bytes = 0;
        for waiting in std::mem::take(&mut self.waiting) {
            let received = waiting.message.received;
            let is_over = all
                || now < received.saturating_sub(self.patience)
                || now >= received.saturating_add(self.patience);
            if is_over || now >= waiting.wait.expected {
                kept.extend(self.retry(waiting, tf, is_over, now));
            } else {
                self.bytes += waiting.message.size;
                self.waiting.push_back(waiting);
            }
        }
        kept
    }

    /// Returns true if anything waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the types of messages that do not fit their rules, if there are new ones.
    pub(super) fn new_misfits(&mut self) -> Vec<String> {
        let count = self.rules.misfits().count();
        if count == std::mem::replace(&mut self.misfits, count) || count == 0 {
            return Vec::new();
        }
        self.rules.misfits().map(ToString::to_string).collect()
    }

    /// Sights of known things that no memory tells of yet.
    pub(super) fn untold(&mut self, now: Stamp, all: bool) -> Vec<UnreportedSightings> {
        self.rules.untold(now, all)
    }

    fn retry(
        &mut self,
        waiting: Waiting,
        tf: &Buffer,
        last: bool,
        now: Stamp,
    ) -> Vec<KeptResource> {
        let Waiting { wait, message } = waiting;
        let Observed { message: inner, .. } = &*message;
        let decisions = self.rules.retry(&wait, &message.arrival(), inner, tf, last);
        self.sort(decisions, &message, now.saturating_add(AGAIN))
    }
}

#[cfg(test)]
mod tests {
    use omir_core::value::Map;

    use super::*;
    use crate::interface::Registry;
    use crate::rules::Ros2Section;
    use crate::tf::Transform;

    fn at(millis: i64) -> Stamp {
        Stamp::from_nanos(1_780_000_000_000_000_000 + millis * 1_000_000)
    }

    /// A rule for poses, of which every one is kept.
    fn ingest() -> Ingest {
        let map: Map = toml::from_str(
            "[[topic]]\ntopic = '/seen'\ntype = 'geometry_msgs/msg/PoseStamped'\ntext = 'a cup'\n\
             keep.at_most_every_s = 0",
        )
        .unwrap();
        let section: Ros2Section = toml::from_str(&toml::to_string(&map).unwrap()).unwrap();
        let rules = Rules::compile(&section.resolve().unwrap(), &Registry::standard()).unwrap();
        Ingest::new(rules, Duration::from_millis(500))
    }

    /// The camera in the map, every 10 ms until `last`.
    fn tf(last: i64) -> Buffer {
        let mut tf = Buffer::default();
        for millis in (0..=last).step_by(10) {
            tf.insert("map", "camera", at(millis), Transform::identity(), false).unwrap();
        }
        tf
    }

    fn seen(millis: i64, size: usize) -> Observed {
        let ty = Registry::standard().message("geometry_msgs/msg/PoseStamped").unwrap();
        let mut message = Message::new(&ty);
        let (sec, nanosec) = at(millis).to_ros().unwrap();
        message.set("header.stamp.sec", i64::from(sec)).unwrap();
        message.set("header.stamp.nanosec", u64::from(nanosec)).unwrap();
        message.set("header.frame_id", "camera").unwrap();
        message.set("pose.orientation.w", 1.0).unwrap();
        Observed {
            topic: "/seen".into(),
            node: None,
            received: at(millis),
            is_live: true,
            message,
            size,
        }
    }

    #[test]
    fn a_message_waits_for_its_transform() {
        let mut ingest = ingest();
        assert!(ingest.observe(seen(105, 1), &tf(100)).is_empty());
        assert!(ingest.go_on(at(106), &tf(100), false).is_empty());
        let kept = ingest.go_on(at(115), &tf(110), false);
        assert_eq!((kept.len(), kept[0].unplaced.as_deref()), (1, None));
        assert!(!ingest.is_waiting());
        assert_eq!(ingest.bytes, 0);
    }

    #[test]
    fn when_transforms_stop_nobody_looks_for_them_with_every_message() {
        let mut ingest = ingest();
        let tf = tf(100);
        ingest.observe(seen(105, 1), &tf);
        // It should be there by now. After that it is looked for now and then only.
        assert!(ingest.go_on(at(200), &tf, false).is_empty());
        assert_eq!(ingest.waiting[0].wait.expected, at(200).saturating_add(AGAIN));
        assert_eq!(ingest.bytes, 1);
        let kept = ingest.go_on(at(700), &tf, false);
        assert!(kept[0].unplaced.is_some());
    }

    #[test]
    fn large_messages_that_wait_make_room_for_each_other() {
        let mut ingest = ingest();
        let tf = tf(100);
        let mut kept = 0;
        for n in 0..10 {
            kept += ingest.observe(seen(105 + n, MOST_BYTES / 4), &tf).len();
            assert!(ingest.bytes <= MOST_BYTES);
        }
        assert_eq!((kept, ingest.waiting.len()), (6, 4));
    }
}
