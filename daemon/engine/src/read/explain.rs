//! Explanations for people: the tier of a memory, its reasons, and the time at which it fades (`docs/keys.md`,
//! "Explain" and "Retrievability").

use omir_core::bond::{FAINT, learned};
use omir_core::forgetting::{ANCHOR_FLOOR, HalfLife, hours_until};
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::number::Number;
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::{Map, Value};

use omird_store::{ReadError, RefKey};

use crate::Engine;
use crate::disk;
use crate::error::{Code, Error};
use crate::index::catalog::{Catalog, Head};
use crate::index::doc::{self, Doc, DocId, NEVER, Stamp};
use crate::index::facts::DecayState;
use crate::index::fading::{self, Bond, Fading, ROUNDING};
use crate::write::consolidate;
use crate::write::plan::need_of;

/// Rows whose need is worked out in one hold of the catalog.
const RANKED_AT_ONCE: usize = 8 << 10;

fn float(n: f64) -> Value {
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

fn int(n: u64) -> Value {
    Value::Number(Number::from(n))
}

fn instant(micros: i64) -> Value {
    Timestamp::from_micros(micros).to_string().into()
}

/// `hours` after `from`, and a little more, so that the rule holds at it however it was rounded; `None` beyond what an
/// instant can name.
fn after(from: i64, hours: f64) -> Option<i64> {
    fading::after(from, hours).map(|at| at.saturating_add(ROUNDING))
}

/// The next time a record moves if it is not accessed, and where to.
///
/// Each rule of tiers begins to hold at one instant; the first of them at which the record is
/// elsewhere is the answer.
fn next_move(
    fading: &Fading,
    doc: &Doc,
    access: &DecayState,
    now: i64,
) -> Option<(i64, &'static str)> {
    let (current, _) = fading.tier(doc, access, now);
    let mut instants = fading.moves(doc, access).map(|at| at.map(|at| at.saturating_add(ROUNDING)));
    instants.sort_unstable();
    instants.into_iter().flatten().filter(|&at| at > now).find_map(|at| {
        let (tier, _) = fading.tier(doc, access, at);
        (tier != current).then_some((at, tier.as_str()))
    })
}

/// Explains something whose newest version the card has lost.
fn explain_lost(target: &Ref, now: i64, lost: Stamp, readable: Option<u64>) -> Value {
    let mut map = Map::new();
    map.insert("ref", target.to_string());
    map.insert("now", instant(now));
    map.insert("version", int(lost.version));
    if lost.recorded != 0 {
        map.insert("recorded", instant(lost.recorded));
    }
    map.insert("unreadable", Value::Bool(true));
    map.insert("readableVersion", readable.map_or(Value::Null, int));
    Value::Object(map)
}

impl Engine {
    /// Explains where a resource stands: its tier and the rule that put it there, how retrievable it
    /// is, when it will move, fade and expire, and how much it is needed beside the others. Changes
    /// nothing and counts as no access.
    ///
    /// # Errors
    /// `NOT_FOUND` if the store never had it, `INTERNAL` if it cannot be read.
    pub fn explain(&self, target: &Ref) -> Result<Value, Error> {
        let key = RefKey::of(target);
        let now = self.now().0.as_micros();
        let (head, row, forgotten_at) = {
            let catalog = self.catalog();
            if let Some(lost) = catalog.losses.missed(&key) {
                let readable = catalog.live(&key).map(|id| catalog.doc(id).version);
                return Ok(explain_lost(target, now, lost.stamp, readable));
            }
            let head = catalog.head(&key).ok_or_else(|| {
                let hint = match catalog.losses.has_unknown() {
                    true => "; the card has lost memories whose names cannot be read, see disk.hint of the status",
                    false => "",
                };
                Error::at(Code::NotFound, "/ref", format!("{target} is not in the store{hint}"))
            })?;
            // Of what was forgotten, compaction may have left nothing but that it was.
            let doc = catalog.docs().get(head.doc as usize).cloned();
            let row = doc.map(|doc| (catalog.handle(head.doc), doc));
            (head, row, catalog.forgotten_at(&key))
        };
        let mut map = Map::new();
        map.insert("ref", target.to_string());
        map.insert("now", instant(now));
        map.insert("version", int(head.version));
        let (handle, doc) = match row {
            Some(row) if head.live => row,
            _ => {
                map.insert("forgotten", Value::Bool(true));
                map.insert("forgottenAt", forgotten_at.map_or(Value::Null, instant));
                let why = self.inner.shared.deletion_causes.of(&key);
                map.insert("reason", why.map_or(Value::Null, Value::from));
                return Ok(Value::Object(map));
            }
        };
        map.insert("recorded", instant(doc.recorded));
        if doc.valid_until != NEVER {
            self.explain_validity(&doc, now, &mut map);
        }
        let resource = match handle.resource() {
            Ok(resource) => resource,
            Err(ReadError::Disk { error, .. }) if !disk::is_loss(&error) => {
                let message = format!("{target} cannot be read: {error}");
                return Err(Error::new(Code::Internal, message));
            }
            // The card has lost it since the start.
            Err(_) => {
                map.insert("unreadable", Value::Bool(true));
                map.insert("readableVersion", Value::Null);
                return Ok(Value::Object(map));
            }
        };
        if let Resource::MemoryRecord(record) = &resource {
            self.explain_record(head, &doc, now, &mut map);
            map.insert("observations", int(consolidate::count(record)));
        }
        if target.kind == ResourceType::Relationship {
            self.explain_bond(head.doc, &doc, now, &mut map);
        }
        // Anybody may send one of ours, of any name: they have a place of their own.
        let mut extensions = Map::new();
        for extension in resource.extensions() {
            let short = extension.url.strip_prefix("urn:omird:ext:");
            if let (Some(name), Some(value)) = (short, &extension.value_json) {
                extensions.insert(name, value.clone());
            }
        }
        if !extensions.is_empty() {
            map.insert("extensions", Value::Object(extensions));
        }
        Ok(Value::Object(map))
    }

    fn explain_validity(&self, doc: &Doc, now: i64, map: &mut Map) {
        map.insert("validUntil", instant(doc.valid_until));
        map.insert("isValid", Value::Bool(now < doc.valid_until));
        let kept = self.settings().forgetting.expire_after.as_micros();
        let kept = i64::try_from(kept).unwrap_or(i64::MAX);
        if doc.access.is_none_or(|access| !access.anchored) {
            map.insert("expires", instant(doc.valid_until.saturating_add(kept)));
        }
    }

    fn explain_record(&self, head: Head, doc: &Doc, now: i64, map: &mut Map) {
        let catalog = self.catalog();
        let Some(access) = catalog.decay_state(head.doc) else { return };
        if let Some((tier, why)) = catalog.tier(head.doc, false, now) {
            map.insert("tier", tier.as_str());
            map.insert("storedTier", doc.stored_tier().unwrap_or_default().as_str());
            map.insert("reason", why.to_string());
        }
        map.insert("retrievability", float(doc::retrievability(&access, now)));
        map.insert("halfLifeHours", float(access.half_life_hours));
        map.insert("lastAccess", instant(access.last_access));
        map.insert("accessCount", int(access.access_count.into()));
        map.insert("anchored", Value::Bool(access.anchored));
        let Some(fading) = catalog.fading().copied() else { return };
        drop(catalog);
        let (_, inputs) = fading.inputs(doc, &access, now);
        map.insert("strength", float(inputs.strength(&fading.tiers)));
        if let Some((at, tier)) = next_move(&fading, doc, &access, now) {
            let mut next = Map::new();
            next.insert("at", instant(at));
            next.insert("tier", tier);
            map.insert("nextMove", Value::Object(next));
        }
        let level = fading.tiers.archive_below;
        let floor = if access.anchored { ANCHOR_FLOOR } else { 0.0 };
        let half_life = HalfLife::new(access.half_life_hours).unwrap_or_default();
        let fades = hours_until(half_life, level).filter(|_| level > floor);
        let fades = fades.and_then(|hours| after(access.last_access, hours));
        map.insert("fadesBelow", float(level));
        map.insert("fades", fades.map_or(Value::Null, instant));
        self.explain_need(head.doc, &fading, now, map);
    }

    /// Its need, and how many of those that may go at all are needed less.
    fn explain_need(&self, id: DocId, fading: &Fading, now: i64, map: &mut Map) {
        let need_at = |catalog: &Catalog, id| need_of(catalog, fading, id, now);
        let Some(need) = need_at(&self.catalog(), id) else {
            map.insert("evictable", Value::Bool(false));
            return;
        };
        map.insert("evictable", Value::Bool(true));
        let (mut all, mut below, mut next) = (0u64, 0u64, 0);
        loop {
            let catalog = self.catalog();
            let count = catalog.docs().len();
            let upto = count.min(next + RANKED_AT_ONCE);
            for id in next as DocId..upto as DocId {
                if let Some(other) = need_at(&catalog, id) {
                    all += 1;
                    below += u64::from(other < need);
                }
            }
            next = upto;
            if next == count {
                break;
            }
        }
        map.insert("need", float(need));
        map.insert("neededLess", int(below));
        map.insert("evictableInAll", int(all));
    }

    fn explain_bond(&self, id: DocId, doc: &Doc, now: i64, map: &mut Map) {
        let catalog = self.catalog();
        let Bond { activations, last } = catalog.bond(id).unwrap_or_default();
        let strength = catalog.importance(id, false, now);
        map.insert("statedStrength", float(doc.importance));
        map.insert("statedAt", instant(doc.since));
        map.insert("coActivations", int(activations.into()));
        let used = if activations == 0 { doc.since } else { last.max(doc.since) };
        map.insert("lastActive", instant(used));
        map.insert("strengthNow", float(strength));
        let Some(fading) = catalog.fading() else { return };
        // A client that stated no strength does not know what it counts for.
        let held = learned(doc::or_neutral(doc.importance), activations);
        let fades = (held > FAINT).then(|| hours_until(fading.bond_half_life, FAINT / held));
        let fades = fades.flatten().and_then(|hours| after(used, hours));
        map.insert("fadesBelow", float(FAINT));
        map.insert("fades", fades.map_or(Value::Null, instant));
    }
}
