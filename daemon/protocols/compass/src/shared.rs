//! Parts that all calls share: the engine, the settings, and what is kept in mind between calls.

use std::sync::Arc;

use omird_engine::Engine;
use omird_router::ModelClient;
use parking_lot::RwLock;

use crate::active_memories::{ActiveMemories, EvictionEntry};
use crate::failure::Failure;
use crate::model::server::Server;
use crate::model::vector_cache::VectorCache;
use crate::model::{embedding, summary};
use crate::money::account::Account;
use crate::money::paying::Purse;
use crate::queues::vectors::VectorQueue;
use crate::settings::Settings;
use crate::signals::Announcer;
use crate::state::Memory;
use crate::store::{Batch, Store, Written};
use crate::uses::Uses;

/// The parts that all calls share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    settings: RwLock<Arc<Settings>>,
    pub(crate) active_memories: ActiveMemories,
    pub(crate) uses: Uses,
    pub(crate) announcer: Announcer,
    pub(crate) account: Account,
    /// Vectors that the server of models made lately.
    pub(crate) vector_cache: VectorCache,
    /// The way to the thread that has vectors made.
    pub(crate) vector_queue: VectorQueue,
    summarizer: Option<Server>,
    embedder: Option<Server>,
    understander: Option<Server>,
}

impl Shared {
    pub(crate) fn new(
        engine: &Engine,
        settings: Settings,
        client: Option<Arc<dyn ModelClient>>,
    ) -> Self {
        Self {
            engine: engine.clone(),
            settings: RwLock::new(Arc::new(settings)),
            active_memories: ActiveMemories::default(),
            uses: Uses::default(),
            announcer: Announcer::default(),
            account: Account::default(),
            vector_cache: VectorCache::default(),
            vector_queue: VectorQueue::new(),
            // Three of them: where the one kind of request fails, the others may be answered. A batch of long texts may take more
            // time than the server is given; a question is short, and a client waits for it.
            summarizer: client.clone().map(|client| Server::new(client, summary::MOST_AT_ONCE)),
            embedder: client.clone().map(Server::without_rest),
            understander: client.map(|client| Server::new(client, embedding::MOST_QUESTIONS)),
        }
    }

    /// Returns the server that is asked for summaries, if there is one.
    pub(crate) fn summarizer(&self) -> Option<&Server> {
        self.summarizer.as_ref()
    }

    /// Returns the server that is asked for vectors of questions, if there is one.
    pub(crate) fn understander(&self) -> Option<&Server> {
        self.understander.as_ref()
    }

    /// Returns the server that is asked for vectors of memories, if there is one.
    pub(crate) fn embedder(&self) -> Option<&Server> {
        self.embedder.as_ref()
    }

    /// Returns the parts that a request to a model is paid by.
    pub(crate) fn purse(&self) -> Purse<'_> {
        Purse { engine: &self.engine, account: &self.account, announcer: &self.announcer }
    }

    /// Returns the settings of now. A call keeps those that it began with.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.read().clone()
    }

    /// Writes a batch, and keeps in mind what it changes.
    pub(crate) fn commit(&self, store: &Store, mut batch: Batch) -> Result<Written, Failure> {
        let (memories, tasks) = batch.take_notes();
        let written = store.commit(batch)?;
        let embeds = self.embedder.is_some() && self.settings.read().embedding_model.is_some();
        for memory in &memories {
            self.enter(store, memory)?;
            if embeds && !memory.archived {
                self.vector_queue.tell(memory);
            }
        }
        tasks.iter().for_each(|task| self.uses.written(store.tenant(), task));
        Ok(written)
    }

    /// Enters a memory that was written where memories like it are counted.
    pub(crate) fn enter(&self, store: &Store, memory: &Memory) -> Result<(), Failure> {
        let entry = EvictionEntry::of(memory);
        for handle in store.owners(&memory.agent_id, memory.task_id.as_deref())? {
            self.active_memories.note(&handle, &entry);
        }
        Ok(())
    }

    /// Takes other settings from now on.
    pub(crate) fn reconfigure(&self, settings: Settings) {
        *self.settings.write() = Arc::new(settings);
        self.vector_queue.look();
    }
}
