//! Checks of a store that has been opened again.
//!
//! a. Everything acknowledged is there, and equal; what was forgotten stays forgotten.
//! b. Of the one request nobody knows about, everything is there or nothing.
//! c. Versions and counts are those of the model.
//! d. Recalls and the export give what a scan over the model gives.
//! e. Another stop and start change nothing.
//! f. Every sealed segment is read by any CBOR decoder, validates alone (invariant 6 of ARCHITECTURE.md), and the
//!    chain of signatures holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::model::Resource;
use omir_core::reference::{Ref, ResourceType};
use omir_core::tier::Tier;
use omir_core::validate::{Level, Severity, validate_bundle};
use omir_core::value::Value;
use omird::disk::{self, Disk};
use omird::engine::testing::ByHand;
use omird::engine::{Engine, Query};
use omird::store::format::segment::{self, Names};
use omird::store::format::signature::{Digest, Seal};

use crate::Result;
use crate::cut_disk::CutDisk;
use crate::journal::Journal;
use crate::life::questions;
use crate::model::{Model, comparable};
use crate::session::{Session, TestClock};

/// Reads a resource as the engine hands it out.
///
/// # Panics
/// If it is none.
pub fn decode(bytes: &[u8]) -> Resource {
    let value = cbor::from_slice(bytes, &Limits::default()).expect("what is handed out is CBOR");
    Resource::from_value(value).unwrap_or_else(|faults| panic!("handed out: {faults:?}"))
}

/// Opens a store that lost its power, checks everything, twice, and gives back what it holds.
///
/// # Errors
/// A description of the first thing that is wrong.
pub fn reopen(disk: &CutDisk, clock: &Arc<TestClock>, journal: &Journal) -> Result<Model> {
    let open = || Session::open(disk, clock).map_err(|error| format!("it does not open: {error}"));
    let session = open()?;
    if !session.damage().is_empty() {
        return Err(format!("damage is reported: {:?}", session.damage()).into());
    }
    let found = recognise(&session, journal)?;
    let first = everything(&session)?;
    drop(session);

    let session = open()?;
    if !session.damage().is_empty() {
        return Err(
            format!("at the second start damage is reported: {:?}", session.damage()).into()
        );
    }
    store(&session, &found).map_err(|why| format!("after a second start: {why}"))?;
    let second = everything(&session)?;
    if first.len() != second.len() {
        return Err(format!("{} resources became {}", first.len(), second.len()).into());
    }
    for ((target, before), after) in first.iter().zip(second.values()) {
        // Sealing may drop a reference to what is forgotten, and nothing else.
        let loose = &found.memories[target].loose;
        let (mut before, mut after) = (before.clone(), after.clone());
        before.retain_references(|target| !loose.contains(target));
        after.retain_references(|target| !loose.contains(target));
        if before != after {
            return Err(format!("a second start changed {before:?} to {after:?}").into());
        }
    }
    drop(session);
    segments(disk)?;
    Ok(found)
}

/// Returns the one of the two possible models that a store holds.
///
/// # Errors
/// If neither.
pub fn recognise(engine: &Engine, journal: &Journal) -> Result<Model> {
    let without = match store(engine, &journal.acknowledged) {
        Ok(()) => return Ok(journal.acknowledged.clone()),
        Err(why) => why,
    };
    match &journal.in_doubt {
        None => Err(without),
        Some(model) => match store(engine, model) {
            Ok(()) => Ok(model.clone()),
            Err(with) => Err(format!(
                "without the request in doubt: {without}\nwith the request in doubt: {with}"
            )
            .into()),
        },
    }
}

/// Checks that a store holds exactly what the model says.
///
/// # Errors
/// A description of the first difference.
pub fn store(engine: &Engine, model: &Model) -> Result {
    for (target, memory) in &model.memories {
        let found = engine.get(target).map_err(|error| format!("{target}: {error}"))?;
        match (found, &memory.resource) {
            (None, None) => {}
            (None, Some(_)) => return Err(format!("{target} is lost").into()),
            (Some(_), None) => return Err(format!("{target} was forgotten and is back").into()),
            (Some(bytes), Some(expected)) => {
                let found = comparable(&decode(&bytes), &memory.loose);
                let expected = comparable(expected, &memory.loose);
                if found != expected {
                    return Err(format!("{target} is {found:?}\ninstead of {expected:?}").into());
                }
            }
        }
    }
    for target in everything(engine)?.keys() {
        if !model.is_live(target) {
            return Err(format!("{target} should not be there").into());
        }
    }
    counts(engine, model)?;
    recalls(engine, model)?;
    export(engine, model)
}

/// All live resources, as the engine lists them.
fn everything(engine: &Engine) -> Result<BTreeMap<Ref, Resource>> {
    let mut found = BTreeMap::new();
    let mut twice = None;
    engine.each(None, |bytes| {
        let resource = decode(&bytes);
        if let Some(before) = found.insert(resource.reference(), resource) {
            twice = Some(before.reference());
        }
    });
    match twice {
        Some(target) => Err(format!("{target} is listed twice").into()),
        None => Ok(found),
    }
}

fn counts(engine: &Engine, model: &Model) -> Result {
    let status = engine.status("robot");
    let count = |pointer: &str| status.pointer(pointer).and_then(Value::as_u64).unwrap_or(u64::MAX);
    for of in ResourceType::ALL {
        let (found, expected) = (count(&format!("/counts/types/{of}")), model.count(of));
        if found != expected {
            return Err(format!("{found} live {of} instead of {expected}").into());
        }
    }
    tiers(engine)?;
    // Forgotten versions may be gone once they are sealed or compacted; nothing else may.
    for (name, most, gone) in [
        ("versions", model.versions, model.forgotten_versions),
        ("forgotten", model.tombstones, model.tombstones),
    ] {
        let found = count(&format!("/counts/{name}"));
        let least = most - gone;
        if !(least..=most).contains(&found) {
            return Err(format!("{found} {name} instead of {least} to {most}").into());
        }
    }
    Ok(())
}

/// Checks how many records the status counts in each tier against the records themselves.
fn tiers(engine: &Engine) -> Result {
    let kept = || engine.status("robot").pointer("/counts/tiers").map(ToString::to_string);
    let before = kept();
    let mut counted = Tier::ALL.map(|tier| (tier, 0));
    for resource in everything(engine)?.into_values() {
        if let Resource::MemoryRecord(record) = resource {
            counted[record.tier.unwrap_or_default() as usize].1 += 1;
        }
    }
    let members = counted.map(|(tier, count)| format!(r#""{tier}":{count}"#));
    let counted = Some(format!("{{{}}}", members.join(",")));
    // An access that was counted meanwhile may have moved one.
    match before == kept() && before != counted {
        true => Err(format!("{before:?} are kept of {counted:?}").into()),
        false => Ok(()),
    }
}

fn recalls(engine: &Engine, model: &Model) -> Result {
    for question in questions() {
        let recalled = engine.recall(&question.query)?;
        let found: Vec<Ref> =
            recalled.hits.iter().map(|hit| decode(&hit.resource).reference()).collect();
        let unique: BTreeSet<&Ref> = found.iter().collect();
        let (mut must, mut may) = (BTreeSet::new(), BTreeSet::new());
        for (target, memory, resource) in model.live() {
            if !(question.selects)(resource) {
                continue;
            }
            let mut mentioned = question.mention.is_none();
            resource.for_each_reference(|_, _, target| {
                mentioned |= Some(target) == question.mention.as_ref();
            });
            let is_sure = question.mention.as_ref().is_none_or(|m| !memory.loose.contains(m));
            if mentioned {
                may.insert(target);
            }
            if mentioned && is_sure {
                must.insert(target);
            }
        }
        if unique.len() != found.len()
            || !unique.is_subset(&may)
            || !unique.is_superset(&must)
            || recalled.total != found.len() as u64
        {
            return Err(format!(
                "{:?} gives {found:?} of {} instead of {must:?}",
                question.query, recalled.total
            )
            .into());
        }
    }
    Ok(())
}

fn export(engine: &Engine, model: &Model) -> Result {
    let export = engine.export(&Query::everything())?;
    if export.left_out().count > 0 {
        return Err(format!("the export lacks {:?}", export.left_out()).into());
    }
    let bundle = export.to_value();
    conforms(&bundle).map_err(|why| format!("the export: {why}"))?;
    let entries = bundle.get("entry").and_then(Value::as_array).unwrap_or_default();
    if entries.len() != model.live().count() {
        return Err(format!("the export has {} entries", entries.len()).into());
    }
    for entry in entries {
        let mut found =
            Resource::from_value(entry.clone()).map_err(|faults| format!("{faults:?}"))?;
        let target = found.reference();
        let memory = model.memories.get(&target).ok_or_else(|| format!("{target} is exported"))?;
        let expected = memory.resource.as_ref().map(|r| comparable(r, &memory.loose));
        if expected.as_ref().is_some_and(|expected| expected.meta().is_none()) {
            let recorded = found.meta_mut().take().and_then(|meta| meta.last_updated);
            recorded.ok_or_else(|| format!("{target} is exported without our stamp"))?;
        }
        if Some(comparable(&found, &memory.loose)) != expected {
            return Err(format!("{target} is exported as {found:?}").into());
        }
    }
    Ok(())
}

/// Checks a Bundle at the core level.
///
/// # Errors
/// Its first error.
pub fn conforms(bundle: &Value) -> Result {
    let faults = validate_bundle(bundle, Level::Core);
    match faults.iter().find(|fault| fault.severity() == Severity::Error) {
        Some(fault) => Err(fault.to_string().into()),
        None => Ok(()),
    }
}

/// Checks every sealed segment and the chain of their signatures.
///
/// # Errors
/// A description of the first thing that is wrong.
pub fn segments(disk: &dyn Disk) -> Result<u64> {
    let numbers: Vec<u64> =
        disk.list(segment::DIR)?.iter().filter_map(|name| segment::number_of(name)).collect();
    let read = |path: &str| disk::read(disk, path).map_err(|error| format!("{path}: {error}"));
    let mut order: Vec<(u64, u64)> = Vec::new();
    let mut is_compacted = false;
    for number in numbers {
        let layout = segment::layout(&read(&segment::path(number))?);
        let manifest = layout.map_err(|why| format!("segment {number}: {why}"))?.manifest;
        is_compacted |= !manifest.replaces.is_empty();
        order.push((manifest.first_seq, number));
    }
    order.sort_unstable();
    let mut previous = Digest::default();
    let mut last_seq = 0;
    for (expected, &(_, number)) in (1..).zip(&order) {
        let fault = |why: &dyn std::fmt::Display| format!("segment {number}: {why}");
        if number != expected && !is_compacted {
            return Err(fault(&format!("segment {expected} is missing")).into());
        }
        let bytes = read(&segment::path(number))?;
        let seal =
            Seal::from_json(&read(&segment::signature_path(number))?).map_err(|why| fault(&why))?;
        seal.verify(&bytes, &previous).map_err(|why| fault(&why))?;
        previous = seal.link();

        // A decoder that has never heard of omird.
        let mut rest = bytes.as_slice();
        let _: ciborium::Value = ciborium::from_reader(&mut rest).map_err(|error| fault(&error))?;
        if !rest.is_empty() {
            return Err(fault(&"there is something behind the Bundle").into());
        }
        let bundle = cbor::from_slice(&bytes, &Limits::default()).map_err(|error| fault(&error))?;
        conforms(&bundle).map_err(|why| fault(&why))?;

        let block = segment::index::<Names>(&bytes).map_err(|why| fault(&why))?;
        if block.first_seq <= last_seq || block.last_seq < block.first_seq {
            return Err(fault(&format!(
                "it holds transactions {} to {} and the one before it reaches {last_seq}",
                block.first_seq, block.last_seq
            ))
            .into());
        }
        last_seq = block.last_seq;
    }
    Ok(order.len() as u64)
}
