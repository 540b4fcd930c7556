//! The tokens that are in force: what the files said last, looked at again at most once a second.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use omird_router::{Bounds, Caller, Rate, Scope, Scopes, Unauthenticated};
use subtle::ConstantTimeEq as _;

use crate::clock::Clock;
use crate::file::{Record, Stamp, TokenError, TokenStore, Unreadable};
use crate::grant::{self, DEFAULT_TENANT};
use crate::secret::{Digest, Secret};

/// A change of the files beside the daemon is in force after this at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Longest time for which requests wait for the files. A card that hangs must not hold up whoever has a token.
const PATIENCE: Duration = Duration::from_secs(2);

/// The tokens in force.
pub(crate) struct Known(Arc<Files>);

struct Files {
    store: TokenStore,
    scopes: Arc<[Scope]>,
    looked: Mutex<Looked>,
    /// A look has ended.
    ended: Condvar,
}

struct Looked {
    /// The time of the last look, by the daemon's clock.
    at: Duration,
    /// The look that is under way, by the machine's.
    since: Option<Instant>,
    /// The number of the last look that began, and of the last that ended.
    begun: u64,
    ended: u64,
    /// As the files were when they were read; `None` if the disk has not given one of them, and is asked again.
    stamps: Option<[Option<Stamp>; 2]>,
    tokens: Arc<Tokens>,
}

/// The tokens, as they were read at one moment.
#[derive(Default)]
pub(crate) struct Tokens {
    /// Digest, end and caller of each.
    tokens: Vec<Token>,
    /// The digest of `local.token`.
    local: Option<Digest>,
    /// The reason why a file cannot be read.
    pub(crate) trouble: Option<String>,
}

#[derive(Clone)]
struct Token {
    digest: Digest,
    expires: Option<i64>,
    caller: Caller,
}

/// The one that a token is of.
pub(crate) enum Bearer {
    /// The person at the machine.
    Owner,
    /// The holder of a token.
    Holder(Caller),
}

impl Known {
    /// Reads the tokens of a data folder.
    pub(crate) fn of(store: TokenStore, scopes: Arc<[Scope]>, clock: &dyn Clock) -> Self {
        let looked = Looked {
            at: clock.monotonic(),
            since: None,
            begun: 0,
            ended: 0,
            stamps: None,
            tokens: Arc::default(),
        };
        let (looked, ended) = (Mutex::new(looked), Condvar::new());
        let files = Files { store, scopes, looked, ended };
        files.look(files.lock());
        Self(Arc::new(files))
    }

    pub(crate) fn store(&self) -> &TokenStore {
        &self.0.store
    }

    /// Returns the tokens in force. A thread of its own looks at the files, and requests wait for it as long as a disk that
    /// answers may take.
    pub(crate) fn tokens(&self, clock: &dyn Clock) -> Arc<Tokens> {
        let mut looked = self.0.lock();
        let now = clock.monotonic();
        if looked.since.is_none() && now.saturating_sub(looked.at) >= LOOK_EVERY {
            looked.at = now;
            looked.since = Some(Instant::now());
            let files = self.0.clone();
            let builder = std::thread::Builder::new().name("omird-keys".to_owned());
            if builder.spawn(move || files.look(files.lock())).is_err() {
                // No thread to be had: it is tried again with the next request.
                looked.since = None;
                looked.at = now.saturating_sub(LOOK_EVERY);
            }
        }
        if let Some(left) = looked.since.and_then(|since| PATIENCE.checked_sub(since.elapsed())) {
            let waited = self.0.ended.wait_timeout_while(looked, left, |it| it.since.is_some());
            looked = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        looked.tokens.clone()
    }

    /// Reads the files again at once: this daemon has changed them.
    pub(crate) fn refresh(&self, clock: &dyn Clock) {
        let mut looked = self.0.lock();
        looked.at = clock.monotonic();
        self.0.look(looked);
    }
}

impl Files {
    fn lock(&self) -> MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files if they have changed. Nothing is locked meanwhile; of two looks at once the one that began last counts.
    fn look(&self, mut looked: MutexGuard<'_, Looked>) {
        looked.begun += 1;
        let (turn, known, before) = (looked.begun, looked.stamps, looked.tokens.clone());
        drop(looked);
        // Taken before reading: a file that changes meanwhile is read once more.
        let stamps = self.store.stamps();
        let read = (known.as_ref() != Some(&stamps))
            .then(|| Tokens::read(&self.store, &self.scopes, &before));
        let mut looked = self.lock();
        if turn > looked.ended {
            looked.ended = turn;
            if let Some((tokens, is_whole)) = read {
                looked.stamps = is_whole.then_some(stamps);
                looked.tokens = Arc::new(tokens);
            }
        }
        looked.since = None;
        self.ended.notify_all();
    }
}

impl Tokens {
    /// Reads the files, and returns true if the disk gave both. What it does not give for now, such as for want of a
    /// descriptor, stays as it was `before`: a passing fault locks nobody out.
    fn read(store: &TokenStore, known: &[Scope], before: &Self) -> (Self, bool) {
        let mut trouble = Vec::new();
        let mut is_whole = true;
        let tokens = match store.list() {
            Ok(records) => records.iter().filter_map(|record| Token::of(record, known)).collect(),
            Err(error) => {
                let is_passing = matches!(&error, TokenError::Unreadable(_, Unreadable::Disk(why)) if may_pass(why));
                trouble.push(error.to_string());
                is_whole &= !is_passing;
                if is_passing { before.tokens.clone() } else { Vec::new() }
            }
        };
        let local = match store.local_secret() {
            Ok(secret) => secret.map(|secret| secret.digest()),
            Err(error) => {
                trouble.push(format!("{}: {error}", store.local().display()));
                is_whole &= !may_pass(&error);
                before.local.filter(|_| may_pass(&error))
            }
        };
        let trouble = (!trouble.is_empty()).then(|| trouble.join("; "));
        if let Some(trouble) = trouble.as_ref().filter(|_| trouble != before.trouble) {
            tracing::error!("{trouble}");
        }
        (Self { tokens, local, trouble }, is_whole)
    }

    /// Returns the number of tokens, that of the person at the machine among them.
    pub(crate) fn count(&self) -> usize {
        self.tokens.len() + usize::from(self.local.is_some())
    }

    /// Returns whose token it is. Each token is compared, and each to its end: the time does not tell how near a guess is.
    pub(crate) fn bearer(
        &self,
        text: &str,
        transport: &'static str,
        clock: &dyn Clock,
    ) -> Result<Bearer, Unauthenticated> {
        let secret = Secret::parse(text).ok_or(Unauthenticated::Unknown)?;
        let digest = secret.digest();
        let is_local = self.local.is_some_and(|local| bool::from(local.ct_eq(&digest)));
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.digest.ct_eq(&digest)) {
                found = Some(token);
            }
        }
        if is_local {
            return Ok(Bearer::Owner);
        }
        let token = found.ok_or(Unauthenticated::Unknown)?;
        if let Some(expires) = token.expires {
            let now = clock.now().ok_or(Unauthenticated::ClockUntrusted)?;
            if now >= expires {
                return Err(Unauthenticated::Expired);
            }
        }
        Ok(Bearer::Holder(Caller { transport, ..token.caller.clone() }))
    }
}

/// Returns true if the same file may be read a little later, although nobody has changed it.
fn may_pass(error: &io::Error) -> bool {
    !matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidData)
}

impl Token {
    fn of(record: &Record, known: &[Scope]) -> Option<Self> {
        let grant = &record.grant;
        let rate = |requests: Option<u32>, per| requests.map(|requests| Rate { requests, per });
        let rates = [rate(grant.rate, SECOND), rate(grant.per_hour, HOUR)];
        // A scope of another version opens nothing here, and is no fault.
        let held = grant.scopes.iter().filter_map(|scope| grant::find(known, scope));
        let tenant = grant.tenant.as_deref().filter(|tenant| *tenant != DEFAULT_TENANT);
        let caller = Caller {
            tenant: tenant.map(Into::into),
            agents: grant.agents.iter().map(|agent| agent.as_str().into()).collect(),
            authority: grant.authority,
            scopes: Scopes::Only(held.collect()),
            bounds: Bounds { rates, ..Bounds::default() },
            ..Caller::trusted("", grant.name.as_str())
        };
        Some(Self { digest: record.digest()?, expires: grant.expires, caller })
    }
}
