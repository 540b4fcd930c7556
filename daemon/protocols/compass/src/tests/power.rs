//! Vectors beside a card that is full, and one whose power is cut.

use std::io;
use std::sync::atomic::Ordering;

use omird_store::disk::{Disk, DiskFile, Folder, Mode};
use omird_store::pass_on;

use super::meaning::*;
use super::*;

/// A change of a file that was not synced: what it takes to take it back.
struct Undo {
    file: u64,
    handle: Arc<dyn DiskFile>,
    offset: u64,
    before: Vec<u8>,
    len: u64,
}

#[derive(Default)]
struct State {
    /// Changes so far, and the number of the one that the power fails at.
    changes: u64,
    cut_at: Option<u64>,
    is_off: bool,
    is_full: bool,
    /// The files by name, whatever handles there are of them.
    files: std::collections::HashMap<String, u64>,
    opened: u64,
    undo: Vec<Undo>,
}

impl State {
    fn look(&self) -> io::Result<()> {
        if self.is_off { Err(io::Error::other("no power, for the test")) } else { Ok(()) }
    }

    /// Counts a change, and cuts the power at the one that was named: of all files what was synced stays.
    fn change(&mut self) -> io::Result<()> {
        self.look()?;
        self.changes += 1;
        if self.cut_at.is_some_and(|at| self.changes >= at) {
            self.is_off = true;
            while let Some(Undo { handle, offset, before, len, .. }) = self.undo.pop() {
                handle.truncate(len)?;
                handle.write_at(&before, offset)?;
            }
        }
        self.look()
    }
}

/// A card. Once its power is cut, files have the bytes that were synced. Names are as they were given.
#[derive(Clone)]
struct Card {
    folder: Folder,
    state: Arc<Mutex<State>>,
}

impl Card {
    fn new(dir: &Path) -> Self {
        Self { folder: Folder::new(dir), state: Arc::default() }
    }
}

impl Disk for Card {
    pass_on!(folder: list space mount_generation);

    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.state.lock().unwrap().change()?;
        self.folder.create_dir(dir)
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock().unwrap();
        state.look()?;
        let handle = self.folder.open(path, mode)?;
        state.opened += 1;
        let new = state.opened;
        let file = *state.files.entry(path.to_owned()).or_insert(new);
        Ok(Arc::new(Open { handle, file, state: self.state.clone() }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.change()?;
        if let Some(file) = state.files.remove(from) {
            state.files.insert(to.to_owned(), file);
        }
        self.folder.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.change()?;
        state.files.remove(path);
        self.folder.remove(path)
    }

    fn sync_dir(&self, _: &str) -> io::Result<()> {
        self.state.lock().unwrap().change()
    }
}

struct Open {
    handle: Arc<dyn DiskFile>,
    file: u64,
    state: Arc<Mutex<State>>,
}

impl Open {
    /// Makes a change of the bytes from `offset` to `end`, which is taken back unless it is synced.
    fn change(
        &self,
        offset: u64,
        end: u64,
        make: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.change()?;
        if state.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let len = self.handle.len()?;
        let mut before = vec![0; end.min(len).saturating_sub(offset) as usize];
        self.handle.read_at(&mut before, offset.min(len))?;
        let handle = self.handle.clone();
        state.undo.push(Undo { file: self.file, handle, offset, before, len });
        make(&*self.handle)
    }
}

impl DiskFile for Open {
    fn len(&self) -> io::Result<u64> {
        self.state.lock().unwrap().look()?;
        self.handle.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.state.lock().unwrap().look()?;
        self.handle.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change(offset, offset + buf.len() as u64, |file| file.write_at(buf, offset))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.change(len, u64::MAX, |file| file.truncate(len))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.change(0, len, |file| file.allocate(len))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.change()?;
        state.undo.retain(|undo| undo.file != self.file);
        Ok(())
    }
}

/// Stops the daemon, and starts it on a card, which may lose its power while it starts. Returns false then.
fn restart_on(rig: &mut Rig, card: &Card, server: &Arc<Server>, settings: &Settings) -> bool {
    rig.engine.stop();
    let parts =
        Parts { disk: Arc::new(card.clone()), clock: rig.clock.clone(), ..parts(rig.dir.path()) };
    let Ok(engine) = Engine::open(parts, &mut |_| {}) else { return false };
    rig.engine = engine;
    rig.compass = Compass::new(&rig.engine, settings.clone(), Some(server.clone()));
    true
}

/// Starts the daemon, stores two memories and cuts the power so many changes later, once for each number. Returns how often it
/// was cut before all was quiet.
fn cut_after(
    changes: impl Iterator<Item = u64>,
    rig: &mut Rig,
    server: &Arc<Server>,
    settings: &Settings,
    acknowledged: &mut Vec<String>,
) -> usize {
    let mut cuts = 0;
    for more in changes {
        let card = Card::new(rig.dir.path());
        assert!(restart_on(rig, &card, server, settings));
        for _ in 0..2 {
            let id = format!("m{}", acknowledged.len());
            let stored = remember(rig, &id, &format!("Box {id} stands beside the charger."));
            assert!(is(&stored, "/durable"), "{stored}");
            acknowledged.push(id);
        }
        let is_off = || card.state.lock().unwrap().is_off;
        {
            let mut state = card.state.lock().unwrap();
            state.cut_at = Some(state.changes + more);
        }
        let began = Instant::now();
        while !is_off() && began.elapsed() < Duration::from_millis(1500) {
            std::thread::sleep(Duration::from_millis(5));
        }
        cuts += usize::from(is_off());
        card.state.lock().unwrap().cut_at = Some(0);
    }
    cuts
}

#[test]
fn no_cut_loses_a_memory_or_spends_more_than_the_budget() {
    let server = Arc::new(Server::default());
    let mut rig = Rig::new();
    // A byte of a request costs a thousandth of a dollar at most. So there is money for some starts.
    let dear =
        Settings { usd_per_million_embedded: 1000.0, monthly_token_budget_usd: 1.0, ..settings() };
    let mut acknowledged = Vec::new();
    cut_after((1..=5).chain(1..=5), &mut rig, &server, &dear, &mut acknowledged);
    let most = server.bytes.load(Ordering::Acquire) as f64 * 0.001;
    assert!(server.calls() > 0 && most <= 1.0, "{most} dollars in {} requests", server.calls());
    // With enough of it, and all that five changes are: while the lease is written, the request is out, and its vectors are written.
    let rich = Settings { monthly_token_budget_usd: 1e6, ..dear };
    let cuts = cut_after((1..=5).chain(1..=5), &mut rig, &server, &rich, &mut acknowledged);
    assert!(cuts >= 4, "the power was cut {cuts} times");
    let card = Card::new(rig.dir.path());
    assert!(restart_on(&mut rig, &card, &server, &rich));
    for id in &acknowledged {
        assert_eq!(kept(&rig, id).record.content, format!("Box {id} stands beside the charger."));
    }
    let active: Vec<String> =
        acknowledged.into_iter().filter(|id| !kept(&rig, id).state.archived).collect();
    wait_until("vectors", || all_have_vectors(&rig, &active));
}

#[test]
fn vectors_wait_while_the_card_is_full() {
    let server = Arc::new(Server::default());
    let mut rig = Rig::new();
    let card = Card::new(rig.dir.path());
    assert!(restart_on(&mut rig, &card, &server, &settings()));
    remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    found_by_meaning(&rig, "where is my cup", "m1");
    *server.held.lock().unwrap() = Some("entrance");
    remember(&rig, "m2", "Somebody locked the entrance.");
    wait_until("the request is out", || server.texts().iter().any(|text| text.contains("locked")));
    card.state.lock().unwrap().is_full = true;
    *server.held.lock().unwrap() = None;
    let params = r#"{"task_id":"t1","memory_id":"m3","content":"The sink is wet."}"#;
    let refused = rig.response(&agent("a1"), "memory.store", params);
    assert_eq!(code(&refused), -32004, "{refused}");
    std::thread::sleep(Duration::from_millis(300));
    assert!(vectors_of(&rig, "m2").is_empty());
    assert_eq!(text(&found(&rig, "which mug"), "/meta/similarity"), "meaning");
    assert_eq!(ids(&found(&rig, "locked entrance"))[0], "m2");
    let sent = server.texts().len();
    card.state.lock().unwrap().is_full = false;
    // It would look again after half a minute by itself.
    rig.compass.reconfigure(settings());
    wait_until("the vector", || !vectors_of(&rig, "m2").is_empty());
    assert_eq!(server.texts().len(), sent, "what was made is not paid for again");
}
