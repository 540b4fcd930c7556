//! Draft EP-6c: fan-normalised strengths (E250, E251).
//!
//! For each entity, the `normalizedStrength` of the edges that share a regime
//! (`normalization.scheme` and `.over`) sum to at most one. There is no lower bound, because an
//! export may hold only a part of the edges, and edges without a regime or with the scheme `none`
//! promise nothing (spec: Efficiency & Information-Bearing Codes, EP-6).

use alloc::collections::BTreeMap;
use alloc::format;

use super::checker::{Finding, Subject};
use super::fault::FaultCode;
use super::names::{NONE, NameId, Names};
use super::references::target_of;
use super::walk::At;
use crate::value::{Map, Value};

/// Largest excess of a sum above one, from rounding.
const EPSILON: f64 = 1e-6;

/// Edges whose strengths belong together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fan {
    entity: NameId,
    is_softmax: bool,
    over_target: bool,
}

struct Sum {
    strength: f64,
    edges: usize,
    /// The first edge: its position, its name, its own share.
    entry: usize,
    subject: NameId,
    share: Value,
}

/// The sums of a document.
#[derive(Default)]
pub(super) struct Edges(BTreeMap<Fan, Sum>);

impl Edges {
    /// Adds a Relationship, if it takes part. What does not fit its schema has been reported and is
    /// passed over.
    pub(super) fn note(&mut self, names: &mut Names, map: &Map, entry: usize, subject: NameId) {
        let Some(share) = map.get("normalizedStrength") else { return };
        let Some(strength) = share.as_f64().filter(|share| (0.0..=1.0).contains(share)) else {
            return;
        };
        let stated = |name| map.get("normalization")?.get(name);
        let regime = |name| stated(name)?.as_str();
        let is_softmax = match regime("scheme") {
            Some("fan") => false,
            Some("softmax") => true,
            _ => return,
        };
        let over_target = match regime("over") {
            Some("target") => true,
            Some("source") => false,
            _ if stated("over").is_none() => false,
            _ => return,
        };
        let end = map.get(if over_target { "to" } else { "from" });
        let Some((kind, id)) = end.and_then(target_of) else { return };
        let fan = Fan { entity: names.intern(kind, id), is_softmax, over_target };
        let sum = self.0.entry(fan).or_insert_with(|| Sum {
            strength: 0.0,
            edges: 0,
            entry,
            subject,
            share: share.clone(),
        });
        sum.strength += strength;
        sum.edges += 1;
    }

    /// Reports each sum above one, at the first of its edges.
    pub(super) fn judge(self, names: &Names, sink: &mut dyn FnMut(Finding)) {
        for (fan, sum) in self.0 {
            if sum.strength <= 1.0 + EPSILON {
                continue;
            }
            let (kind, id) = names.get(fan.entity);
            let message = format!(
                "the normalizedStrength of the {} edges {} {kind}/{id} with scheme \"{}\" over \"{}\" \
                 sum to {}, more than 1",
                sum.edges,
                if fan.over_target { "to" } else { "from" },
                if fan.is_softmax { "softmax" } else { "fan" },
                if fan.over_target { "target" } else { "source" },
                sum.strength,
            );
            let root = At::base("/");
            let entries = root.name("entry");
            let at = entries.index(sum.entry);
            let fault = at.name("normalizedStrength").fault(FaultCode::EdgeSum, message);
            let id = (sum.subject != NONE).then(|| names.get(sum.subject).1.into());
            let subject =
                Subject { index: sum.entry, resource_type: Some("Relationship".into()), id };
            sink(Finding { fault, entry: Some(subject), value: Some(sum.share) });
        }
    }
}
