//! Candidates: the experiences that an answer may rest on, and how much each is like the question.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Instant;

use omir_core::cbor;
use omir_core::forgetting::{Decay, HalfLife};
use omir_core::instant::Timestamp;
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::{Map, Value};
use omird_engine::{Error, Hit, Query, ScorePart};

use crate::cache::VersionedCandidate;
use crate::experience::Experience;
use crate::ids::{ANY_DOMAIN, Tenant};
use crate::parameters::Vicinity;
use crate::patterns;
use crate::ranking::{Candidate, Pattern, Used, title};
use crate::recording::task_of;
use crate::resources::Stored;
use crate::shared::{Shared, decoded};

/// The most candidates.
const MOST: usize = 64;
/// Less likeness is none.
const LEAST_SIMILARITY: f64 = 0.05;
/// Where the best agreement is less, words that no experience has are left out of the question.
const ENOUGH: f64 = 0.3;
/// Words of a question that are looked at one by one.
const MOST_ASKED: usize = 24;
/// Memories that are looked at where those of the tenant cannot be asked for alone.
const MOST_SEEN: usize = 10_000;
/// Memories of a pattern that are looked for at once.
const PAGE: usize = 4 * MOST;
/// Candidates between two looks at the clock.
const AT_ONCE: usize = 8;
/// Bytes of a text that similar ones are looked for by.
const MOST_WORDS: usize = 1 << 10;

/// The subject of a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum About<'q> {
    /// A task that is recorded.
    Task(&'q str),
    /// Words.
    Intent(&'q str),
    /// A pattern, by its name or in words.
    Pattern(&'q str),
}

/// The bounds within which candidates are looked for.
pub(crate) struct Search<'q> {
    pub(crate) tenant: &'q Tenant,
    pub(crate) domain: Option<&'q str>,
    pub(crate) place: Option<&'q Vicinity>,
    pub(crate) deadline: Instant,
}

/// The candidates that a search has found.
#[derive(Debug, Default)]
pub(crate) struct FoundCandidates {
    pub(crate) candidates: Vec<VersionedCandidate>,
    /// The deadline passed before all was looked at.
    pub(crate) is_partial: bool,
}

impl Search<'_> {
    /// Looks for candidates.
    ///
    /// # Errors
    /// The place cannot be asked for, or the card gives nothing back.
    pub(crate) fn run(&self, shared: &Shared, about: About<'_>) -> Result<FoundCandidates, Error> {
        let mut gathered = Gathered {
            search: self,
            shared,
            seen: HashSet::new(),
            found: FoundCandidates::default(),
        };
        match about {
            About::Intent(text) => gathered.words(text)?,
            About::Pattern(text) => {
                let slugs = patterns::named(text);
                gathered.pattern(&slugs)?;
                gathered.words(&text.replace('_', " "))?;
            }
            About::Task(task) => {
                let Some(text) = gathered.task(task)? else {
                    return Ok(FoundCandidates::default());
                };
                gathered.words(&text)?;
            }
        }
        Ok(gathered.found)
    }

    /// The memories that are looked at: those of the tenant, and of the domain or of none.
    fn query(&self, shared: &Shared) -> Query {
        let (entities, limit) = match (shared.home(self.tenant), self.domain) {
            (Some(home), None) => (vec![home], MOST),
            (Some(_), Some(domain)) => {
                (vec![self.tenant.domain(domain), self.tenant.domain(ANY_DOMAIN)], MOST)
            }
            // Each is held against tenant and domain as it is taken.
            (None, _) => (Vec::new(), MOST_SEEN),
        };
        let types = vec![ResourceType::MemoryRecord];
        let limit = Some(limit);
        let query =
            Query { types, entities, limit, touch: false, explain: true, ..Query::default() };
        match self.place {
            Some(place) => place.narrow(query),
            None => query,
        }
    }

    fn is_of_domain(&self, domain: Option<&str>) -> bool {
        self.domain.is_none_or(|asked| domain.is_none_or(|domain| domain == asked))
    }
}

/// Candidates as they are gathered.
struct Gathered<'s> {
    search: &'s Search<'s>,
    shared: &'s Shared,
    seen: HashSet<Ref>,
    found: FoundCandidates,
}

impl Gathered<'_> {
    /// Looks for those that are told of in these words.
    fn words(&mut self, text: &str) -> Result<(), Error> {
        let before = self.found.candidates.len();
        self.told_in(text, 1.0)?;
        let found = self.found.candidates.iter().skip(before);
        let best = found.map(|drawn| drawn.candidate.similarity).fold(0.0, f64::max);
        if best >= ENOUGH || self.found.is_partial || self.found.candidates.len() >= MOST {
            return Ok(());
        }
        // A word that no experience has is the rarest of all, and takes nearly all of the score: the more often a task was
        // recorded, the less its own words count beside one such. It counts as one of the words of the question instead.
        let mut words: Vec<&str> = text.split_whitespace().take(MOST_ASKED + 1).collect();
        words.sort_unstable();
        words.dedup();
        if words.len() > MOST_ASKED {
            return Ok(());
        }
        let all = words.len();
        let mut known = Vec::with_capacity(all);
        for word in words {
            if Instant::now() >= self.search.deadline {
                self.found.is_partial = true;
                return Ok(());
            }
            if self.is_known(word)? {
                known.push(word);
            }
        }
        if known.is_empty() || known.len() == all {
            return Ok(());
        }
        for drawn in self.found.candidates.drain(before..) {
            self.seen.remove(&drawn.target);
        }
        self.told_in(&known.join(" "), known.len() as f64 / all as f64)
    }

    /// Looks for those that are told of in these words, whose agreement counts by `share`.
    fn told_in(&mut self, text: &str, share: f64) -> Result<(), Error> {
        let query = Query { text: Some(text.into()), ..self.search.query(self.shared) };
        self.walk(&query, |hit, _| share * hit.part(ScorePart::Text).unwrap_or(0.0))?;
        Ok(())
    }

    /// Returns true if some memory that is looked at has this word.
    fn is_known(&self, word: &str) -> Result<bool, Error> {
        let query = self.search.query(self.shared);
        let query = Query { text: Some(word.into()), explain: false, ..query };
        let matches = self.shared.engine.recall_each(&query, |_| ControlFlow::Break(()))?;
        Ok(matches > 0)
    }

    /// Looks for those of these patterns. One that has all of them is as like as can be.
    fn pattern(&mut self, slugs: &[String]) -> Result<(), Error> {
        if slugs.is_empty() {
            return Ok(());
        }
        let entities = slugs.iter().map(|slug| self.search.tenant.pattern(slug)).collect();
        // The domain is not among the filters here: entities are alternatives. So a page may hold none of the domain, and the
        // next one is looked at, until there are enough or there is no time left.
        let mut query = Query { entities, limit: Some(PAGE), ..self.search.query(self.shared) };
        let of = slugs.len() as f64;
        while self.walk(&query, |_, candidate| {
            slugs
                .iter()
                .filter(|slug| candidate.patterns.iter().any(|known| known.slug == **slug))
                .count() as f64
                / of
        })? > (query.offset + PAGE) as u64
            && self.found.candidates.len() < MOST
            && !self.found.is_partial
        {
            query.offset += PAGE;
        }
        Ok(())
    }

    /// Takes what a query finds, and returns the number of its matches.
    fn walk(
        &mut self,
        query: &Query,
        similarity: impl Fn(&Hit, &Candidate) -> f64,
    ) -> Result<u64, Error> {
        let mut looked_at = 0_usize;
        self.shared.engine.recall_each(query, |hit| {
            if self.found.candidates.len() >= MOST {
                return ControlFlow::Break(());
            }
            if looked_at.is_multiple_of(AT_ONCE) && Instant::now() >= self.search.deadline {
                self.found.is_partial = true;
                return ControlFlow::Break(());
            }
            looked_at += 1;
            self.take(&hit.resource, hit.retrievability, |candidate| similarity(&hit, candidate));
            ControlFlow::Continue(())
        })
    }

    /// Takes a memory, if it is an experience of the tenant and like enough.
    fn take(
        &mut self,
        resource: &[u8],
        retrievability: f64,
        similarity: impl FnOnce(&Candidate) -> f64,
    ) -> Option<()> {
        let value = decoded(resource)?;
        let task = task_of(&value, self.search.tenant)?;
        let target = self.search.tenant.experience(task);
        let stored = Stored::of(&value)?;
        let experience = Experience::of(stored.record)?;
        if !self.search.is_of_domain(experience.domain) || self.seen.contains(&target) {
            return None;
        }
        let mut candidate = candidate(&experience, &stored.patterns, retrievability);
        candidate.similarity = similarity(&candidate).clamp(0.0, 1.0);
        if candidate.similarity >= LEAST_SIMILARITY {
            let version = self.shared.engine.live_version(&target);
            self.seen.insert(target.clone());
            let stub = stub(&value);
            self.found.candidates.push(VersionedCandidate { candidate, target, version, stub });
        }
        Some(())
    }

    /// Takes the experience of a task, and returns the words it is told in; `None` if there is none.
    fn task(&mut self, task: &str) -> Result<Option<String>, Error> {
        let engine = &self.shared.engine;
        let target = self.search.tenant.experience(task);
        let Some(bytes) = engine.get(&target)? else { return Ok(None) };
        let Some(value) = decoded(&bytes) else { return Ok(None) };
        let known = Stored::of(&value).and_then(|stored| Experience::of(stored.record));
        let Some(experience) = known else { return Ok(None) };
        let (now, _) = engine.now();
        let instant = |name: &str| Timestamp::parse(value.get(name)?.as_str()?).ok();
        if instant("validUntil").is_some_and(|until| until <= now) {
            return Ok(None);
        }
        // A place narrows what is similar. What was named is meant, wherever it was.
        let is_known = self.search.is_of_domain(experience.domain);
        self.take(&bytes, retrievability(&value, now), |_| 1.0);
        Ok(is_known.then(|| experience.words(MOST_WORDS)))
    }
}

fn candidate(experience: &Experience<'_>, patterns: &[&str], retrievability: f64) -> Candidate {
    let mut nodes: Vec<Used> = Vec::new();
    for node in &experience.nodes {
        let note = || node.notes.and_then(title);
        let is_it =
            |used: &&mut Used| used.node_type == node.node_type && used.reference == node.reference;
        match nodes.iter_mut().find(is_it) {
            Some(known) if known.title.is_none() => known.title = note(),
            Some(_) => {}
            None => nodes.push(Used::new(node.node_type, node.reference, note())),
        }
    }
    Candidate {
        task_id: experience.task_id.to_owned(),
        similarity: 0.0,
        retrievability,
        domain: experience.domain.map(str::to_owned),
        nodes,
        patterns: patterns.iter().map(|&slug| Pattern::from(slug)).collect(),
    }
}

/// Returns what is left of a memory now, from its state of forgetting.
fn retrievability(resource: &Value, now: Timestamp) -> f64 {
    let decay = resource.get("decay");
    let member = |name: &str| decay.and_then(|decay| decay.get(name));
    let half_life = member("halfLifeHours").and_then(Value::as_f64).and_then(HalfLife::new);
    let state = Decay {
        half_life: half_life.unwrap_or_default(),
        access_count: 0,
        anchored: member("anchored").and_then(Value::as_bool).unwrap_or(false),
    };
    let last = member("lastAccess").or_else(|| resource.get("createdAt"));
    let last = last.and_then(Value::as_str).and_then(|text| Timestamp::parse(text).ok());
    last.map_or(0.0, |last| state.retrievability(now.hours_since(last)))
}

/// Returns what the store needs of a resource in order to count its use: its name and what it mentions.
fn stub(resource: &Value) -> Vec<u8> {
    let mut map = Map::new();
    for name in ["resourceType", "id", "entityRefs"] {
        if let Some(value) = resource.get(name) {
            map.insert(name, value.clone());
        }
    }
    cbor::to_vec(&map.into())
}
