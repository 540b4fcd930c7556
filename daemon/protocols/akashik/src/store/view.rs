//! The store as an operation sees it: with what is decided and not written yet.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use omir_core::extension::{AKASHIK_URL, COMPASS_URL, EXPERIENCE_URL};
use omir_core::model::{ExperienceType, MemoryRecord};
use omir_core::reference::ResourceType;
use omird_engine::{Query, ScorePart};
use omird_router::DEFAULT_TENANT;

use super::Store;
use super::held::{record_in, unit_in};
use crate::claims::KnownClaims;
use crate::failure::Failure;
use crate::log::Entry;
use crate::names::Sort;
use crate::nearby::{Agreement, RobotMemory};
use crate::types::{Intent, Source, Unit};
use crate::words::{MemoryType, Mode, UnitStatus};

/// Units that a search by words looks at.
const MOST_RANKED: usize = 200;

/// The experience types that units have. Other records of a field have none.
const OF_UNITS: [ExperienceType; 7] = [
    ExperienceType::Observation,
    ExperienceType::Decision,
    ExperienceType::Discovery,
    ExperienceType::Intention,
    ExperienceType::Learning,
    ExperienceType::Command,
    ExperienceType::Context,
];

/// Records among which memories of the robot are looked for: those of protocols may lie before them.
pub(crate) const MOST_SEARCHED: usize = 4096;

/// The store, and units that are not written yet.
pub(crate) struct StoreView<'a> {
    pub(crate) store: &'a Store,
    pub(crate) known: &'a KnownClaims,
    pub(crate) pending: &'a HashMap<String, Unit>,
    /// Entries that are not written yet.
    pub(crate) entries: &'a [Entry],
}

impl StoreView<'_> {
    /// Returns a unit as it was recorded, with its content.
    ///
    /// # Errors
    /// The store cannot give it.
    pub(crate) fn unit(&self, id: &str) -> Result<Option<Unit>, Failure> {
        match self.pending.get(id) {
            Some(unit) => Ok(Some(unit.clone())),
            None => self.store.unit(id),
        }
    }

    /// Returns the name of what makes the vectors that units are ranked by.
    pub(crate) fn embedding(&self) -> String {
        self.store.embedding()
    }

    /// Returns the claims of units that were compared lately.
    pub(crate) fn known(&self) -> &KnownClaims {
        self.known
    }

    /// Returns false if all is gone at a stop.
    pub(crate) fn persists(&self) -> bool {
        self.store.persists
    }

    /// Returns the longest time that a DETECT looks for conflicts.
    pub(crate) fn patience(&self) -> Duration {
        self.store.patience
    }

    /// Calls `f` with the agreement of units with some words: of the few hundred that agree best, in that order.
    ///
    /// # Errors
    /// The store cannot be searched.
    pub(crate) fn ranked(
        &self,
        text: &str,
        f: &mut dyn FnMut(&str, Agreement),
    ) -> Result<(), Failure> {
        let query = Query {
            text: Some(text.into()),
            by_meaning: true,
            types: vec![ResourceType::MemoryRecord],
            entities: vec![self.store.name(Sort::Field, "field")?],
            // Conflicts and notes of reads would take the places of units.
            experience_types: OF_UNITS.to_vec(),
            include_expired: true,
            include_intentions: true,
            limit: Some(MOST_RANKED),
            touch: false,
            explain: true,
            ..Query::default()
        };
        self.store.engine.recall_each(&query, |hit| {
            let agreement = Agreement {
                words: hit.part(ScorePart::Text).unwrap_or(0.0),
                cosine: hit.part(ScorePart::Meaning).filter(|cosine| *cosine > 0.0),
            };
            if let Ok(Some(unit)) = unit_in(&hit.resource, &self.store.tenant) {
                f(&unit.id, agreement);
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// Returns the robot's own memories that agree best with some words, and false if there are fewer than `most` of them because
    /// the search ended before all that matches.
    ///
    /// # Errors
    /// The store cannot be searched.
    pub(crate) fn robot(
        &self,
        text: &str,
        most: usize,
    ) -> Result<(Vec<RobotMemory>, bool), Failure> {
        if self.store.tenant != DEFAULT_TENANT {
            return Ok((Vec::new(), true));
        }
        let query = Query {
            text: Some(text.into()),
            by_meaning: true,
            types: vec![ResourceType::MemoryRecord],
            limit: Some(MOST_SEARCHED),
            touch: false,
            ..Query::default()
        };
        let mut found = Vec::new();
        let matches = self.store.engine.recall_each(&query, |hit| {
            if let Ok(Some(record)) = record_in(&hit.resource)
                && let Some(unit) = observed(record)
            {
                found.push(RobotMemory { unit, score: hit.score });
            }
            if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let is_whole = found.len() >= most || matches <= MOST_SEARCHED as u64;
        Ok((found, is_whole))
    }

    /// Returns the entry of an epoch.
    ///
    /// # Errors
    /// The store cannot give it.
    pub(crate) fn entry(&self, epoch: u64) -> Result<Option<Entry>, Failure> {
        match self.entries.iter().find(|entry| entry.epoch == epoch) {
            Some(entry) => Ok(Some(entry.clone())),
            None => self.store.read(Sort::Entry, &epoch.to_string(), "entry"),
        }
    }
}

/// Returns a memory of the robot as agents see it; `None` for what a protocol keeps for itself.
fn observed(record: MemoryRecord) -> Option<Unit> {
    let of_protocol = [AKASHIK_URL, COMPASS_URL, EXPERIENCE_URL];
    let mut extensions = record.extension.iter().flatten();
    if extensions.any(|extension| of_protocol.contains(&extension.url.as_str())) {
        return None;
    }
    let source = record.provenance.and_then(|provenance| provenance.source);
    let at = record.event_time.unwrap_or(record.created_at);
    Some(Unit {
        id: format!("omir:MemoryRecord/{}", record.id),
        mode: Mode::Committed,
        of: MemoryType::Observation,
        content: record.content,
        intent: Intent { purpose: "observed by the robot".to_owned(), ..Intent::default() },
        confidence: None,
        source: Source {
            agent_id: source.unwrap_or_else(|| "robot".to_owned()),
            agent_role: "robot".to_owned(),
            session_id: None,
            timestamp: at.to_string(),
        },
        relations: Vec::new(),
        status: UnitStatus::Active,
        epoch: 0,
    })
}
