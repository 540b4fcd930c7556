//! The audit: each line goes to the log, and each refusal and each change to a file, if one is configured
//! (docs/audit.md).
//!
//! Nobody waits for the file. Lines go through a bounded queue to a thread of its own (`file.rs`), and what finds no room
//! there is counted. So are refusals that come faster than a card should bear (`throttle.rs`).

mod file;
mod throttle;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use omir_core::instant::Timestamp;
use omir_core::json;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use parking_lot::Mutex;

use self::file::{Rotating, WriteError};
use self::throttle::Throttle;
use crate::router::{AUDIT, AuditLine, RequestOutcome, Sink, Weight};

/// Lines that may wait for the disk.
const WAITING: usize = 1024;
/// Lines that are written at once.
const AT_ONCE: usize = 256;
/// Longest time that a stop waits for what is still to be written.
const AT_A_STOP: Duration = Duration::from_secs(2);

/// `[audit]`, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// The file that lines are written to; none by default.
    pub file: Option<PathBuf>,
    /// Bytes after which another file begins.
    pub max_bytes: u64,
    /// Older files that are kept beside it.
    pub keep: u32,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self { file: None, max_bytes: 1 << 20, keep: 4 }
    }
}

/// Tells what time it is.
pub type Now = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// The audit of one daemon. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

struct Inner {
    file: Option<PathBuf>,
    queue: Option<Sender<Message>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<Counts>,
    /// Of unknown callers, and of all others: a caller that guesses tokens hides no refusal of a caller with a token.
    throttles: [Mutex<Throttle>; 2],
    began: Instant,
    now: Now,
}

/// Numbers for `status`.
#[derive(Default)]
struct Counts {
    written: AtomicU64,
    /// Lines that the disk or the queue did not take.
    dropped: AtomicU64,
    /// Refusals that came too fast to be told one by one.
    passed_over: AtomicU64,
    fault: Mutex<Option<WriteError>>,
}

enum Message {
    Line(String),
    Stop,
}

impl Audit {
    /// Starts it. Without a file there is no thread.
    ///
    /// # Errors
    /// There is no thread for it. A file that cannot be written is none: it is tried again, and told in the log.
    pub fn start(settings: &AuditSettings, now: Now) -> std::io::Result<Self> {
        let counts = Arc::new(Counts::default());
        let (mut queue, mut thread) = (None, None);
        if let Some(path) = &settings.file {
            let (lines, waiting) = bounded(WAITING);
            let mut file = Rotating::new(path, settings.max_bytes, settings.keep);
            if let Err(error) = file.prepare() {
                tracing::warn!(file = %path.display(), %error, "audit lines cannot be written; it is tried again");
            }
            let told = counts.clone();
            let builder = std::thread::Builder::new().name("omird-audit".to_owned());
            thread = Some(builder.spawn(move || write(file, &waiting, &told))?);
            queue = Some(lines);
        }
        Ok(Self(Arc::new(Inner {
            file: settings.file.clone(),
            queue,
            thread: Mutex::new(thread),
            counts,
            throttles: Default::default(),
            began: Instant::now(),
            now,
        })))
    }

    fn say_passed_over(&self, count: u64) {
        tracing::info!(target: AUDIT, count, "refusals came too fast to be told one by one");
        self.write(|now| {
            let mut map = Map::new();
            map.insert("time", now.to_string());
            map.insert("passedOver", Value::Number(Number::from(count)));
            map
        });
    }

    fn write(&self, line: impl FnOnce(Timestamp) -> Map) {
        let Inner { queue, counts, now, .. } = &*self.0;
        let Some(queue) = queue else { return };
        if queue.is_full() {
            counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut line = json::to_string(&Value::Object(line(now())));
        line.push('\n');
        if queue.try_send(Message::Line(line)).is_err() {
            counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the section `audit` of `status`.
    pub fn status(&self) -> Value {
        let Inner { file, counts, .. } = &*self.0;
        let number = |count: &AtomicU64| Value::Number(Number::from(count.load(Ordering::Relaxed)));
        let file = file.as_ref().map(|file| file.display().to_string());
        let fault = counts.fault.lock();
        let fault = fault.as_ref().map(WriteError::to_string);
        let mut map = Map::new();
        map.insert("file", file.map_or(Value::Null, Value::from));
        map.insert("written", number(&counts.written));
        map.insert("dropped", number(&counts.dropped));
        map.insert("passedOver", number(&counts.passed_over));
        map.insert("trouble", fault.map_or(Value::Null, Value::from));
        Value::Object(map)
    }

    /// Writes what waits, for as long as a stop may take, and ends the thread.
    pub fn stop(&self) {
        let Inner { queue: Some(queue), thread, .. } = &*self.0 else { return };
        let thread = thread.lock().take();
        let Some(thread) = thread else { return };
        let began = Instant::now();
        if queue.send_timeout(Message::Stop, AT_A_STOP).is_err() {
            return;
        }
        while !thread.is_finished() {
            // A disk that hangs must not hold up a stop.
            if began.elapsed() > AT_A_STOP {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = thread.join();
    }
}

impl Sink for Audit {
    fn note(&self, line: &AuditLine<'_>) {
        let Inner { counts, throttles, began, .. } = &*self.0;
        if let RequestOutcome::Refused(_) = line.outcome {
            let throttle = &throttles[usize::from(line.caller.is_unknown())];
            let mut throttle = throttle.lock();
            let taken = throttle.take(began.elapsed());
            drop(throttle);
            match taken {
                None => {
                    counts.passed_over.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Some(0) => {}
                Some(passed_over) => self.say_passed_over(passed_over),
            }
        }
        line.log();
        let is_kept = match line.weight() {
            Weight::Notable | Weight::Change => true,
            Weight::Read => false,
        };
        if is_kept {
            self.write(|now| written(line, now));
        }
    }
}

/// Writes lines until it is told to stop.
fn write(mut file: Rotating, waiting: &Receiver<Message>, counts: &Counts) {
    // Lines that were dropped, as far as the file says so.
    let mut told = 0;
    let mut is_over = false;
    while !is_over && let Ok(first) = waiting.recv() {
        let (mut text, mut lines) = (String::new(), 0);
        for message in std::iter::once(first).chain(waiting.try_iter().take(AT_ONCE)) {
            match message {
                Message::Line(line) => {
                    text.push_str(&line);
                    lines += 1;
                }
                Message::Stop => is_over = true,
            }
        }
        let dropped = counts.dropped.load(Ordering::Relaxed);
        if dropped > told {
            // Before those that came behind it.
            text.insert_str(0, &format!("{{\"dropped\":{}}}\n", dropped - told));
        }
        let fault = file.append(text.as_bytes()).err();
        if fault.is_none() {
            told = dropped.max(told);
        }
        let count = if fault.is_none() { &counts.written } else { &counts.dropped };
        count.fetch_add(lines, Ordering::Relaxed);
        // Not held while the disk is asked: `status` looks at it.
        let mut last = counts.fault.lock();
        if let (None, Some(fault)) = (&*last, &fault) {
            tracing::warn!(%fault, "audit lines are lost until the file can be written");
        }
        *last = fault;
    }
}

/// A line as the file has it. It holds no contents.
fn written(line: &AuditLine<'_>, now: Timestamp) -> Map {
    let number = |count: u64| Value::Number(Number::from(count));
    let AuditLine { caller, method, touched, .. } = line;
    let mut map = Map::new();
    map.insert("time", now.to_string());
    map.insert("caller", &*caller.name);
    map.insert("transport", caller.transport);
    if let Some(tenant) = &caller.tenant {
        map.insert("tenant", &**tenant);
    }
    map.insert("protocol", method.protocol);
    map.insert("method", method.name);
    let names = touched.names().iter().map(|name| Value::from(name.to_string()));
    map.insert("refs", Value::Array(names.collect()));
    map.insert("count", number(touched.count()));
    map.insert("bytes", number(line.bytes as u64));
    map.insert("outcome", line.outcome.as_str());
    map.insert("micros", number(u64::try_from(line.took.as_micros()).unwrap_or(u64::MAX)));
    map
}

#[cfg(test)]
mod tests;
