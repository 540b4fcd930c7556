//! One experience, read from a checked record: of a request, or of the store.

use omir_core::instant::Timestamp;
use omir_core::value::Value;

/// A resource that a task used, once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Node<'r> {
    pub(crate) node_type: &'r str,
    pub(crate) reference: &'r str,
    pub(crate) outcome: &'r str,
    pub(crate) notes: Option<&'r str>,
    pub(crate) latency_ms: Option<u64>,
}

/// An experience, borrowed from its record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Experience<'r> {
    pub(crate) task_id: &'r str,
    pub(crate) title: &'r str,
    pub(crate) intent: Option<&'r str>,
    pub(crate) nodes: Vec<Node<'r>>,
    pub(crate) summary: &'r str,
    pub(crate) success: bool,
    pub(crate) quality: Option<f64>,
    pub(crate) passed: Option<bool>,
    /// As it is written.
    pub(crate) finished_at: &'r str,
    /// The same, read.
    pub(crate) finished: Timestamp,
    /// As stated, else from the two times, unless a clock that was set meanwhile makes it negative.
    pub(crate) duration_ms: Option<u64>,
    pub(crate) domain: Option<&'r str>,
}

impl<'r> Experience<'r> {
    /// Reads a record, or returns `None` where it is none: what lies in the store may have been put there by anybody.
    pub(crate) fn of(record: &'r Value) -> Option<Self> {
        let text = |at: &'r Value, name: &str| at.get(name).and_then(Value::as_str);
        let result = record.get("result")?;
        let times = record.get("timestamps")?;
        let finished_at = text(times, "finished_at")?;
        let finished = Timestamp::parse(finished_at).ok()?;
        let nodes = record.get("nodes_used")?.as_array()?.iter().map(|node| {
            Some(Node {
                node_type: text(node, "type")?,
                reference: text(node, "ref")?,
                outcome: text(node, "outcome")?,
                notes: text(node, "notes"),
                latency_ms: node.get("latency_ms").and_then(Value::as_u64),
            })
        });
        let validation = result.get("validation");
        let spent = || {
            let started = Timestamp::parse(text(times, "started_at")?).ok()?;
            u64::try_from(finished.micros_since(started) / 1000).ok()
        };
        Some(Self {
            task_id: text(record, "task_id")?,
            title: text(record, "title")?,
            intent: text(record, "intent"),
            nodes: nodes.collect::<Option<_>>()?,
            summary: text(result, "summary")?,
            success: result.get("success")?.as_bool()?,
            quality: validation.and_then(|known| known.get("quality_score")?.as_f64()),
            passed: validation.and_then(|known| known.get("passed")?.as_bool()),
            finished_at,
            finished,
            duration_ms: times.get("duration_ms").and_then(Value::as_u64).or_else(spent),
            domain: record.get("context").and_then(|context| text(context, "domain")),
        })
    }

    /// Returns the text that it is found by: title, intent, summary and notes, line by line, cut at `most` bytes.
    pub(crate) fn words(&self, most: usize) -> String {
        let notes = self.nodes.iter().filter_map(|node| node.notes);
        let lines = [self.title].into_iter().chain(self.intent).chain([self.summary]).chain(notes);
        let mut words = String::new();
        for line in lines.filter(|line| !line.is_empty()) {
            if !words.is_empty() {
                words.push('\n');
            }
            words.push_str(line);
            if words.len() > most {
                let end = (0..=most).rev().find(|end| words.is_char_boundary(*end));
                words.truncate(end.unwrap_or(0));
                break;
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    #[test]
    fn a_stated_duration_wins_and_a_negative_one_is_none() {
        let mut value = record("t-1");
        assert_eq!(Experience::of(&value).unwrap().duration_ms, Some(930_000));
        let times = value.as_object_mut().unwrap().get_mut("timestamps").unwrap();
        let times = times.as_object_mut().unwrap();
        times.insert("duration_ms", 7_u64);
        times.insert("started_at", "2999-01-01T00:00:00Z");
        assert_eq!(Experience::of(&value).unwrap().duration_ms, Some(7));
        let times = value.as_object_mut().unwrap().get_mut("timestamps").unwrap();
        times.as_object_mut().unwrap().remove("duration_ms");
        assert_eq!(Experience::of(&value).unwrap().duration_ms, None);
    }

    #[test]
    fn words_are_cut_at_a_character() {
        let mut value = record("t-1");
        value.as_object_mut().unwrap().insert("title", "é".repeat(10));
        let experience = Experience::of(&value).unwrap();
        assert_eq!(experience.words(5), "éé");
        let title = "é".repeat(10);
        assert_eq!(experience.words(1000), format!("{title}\nDock the robot\ndocked"));
    }
}
