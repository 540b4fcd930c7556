//! The tokens that are in force: what the files said last, looked at again at most once a second.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use omird_router::{Bounds, Caller, DEFAULT_TENANT, Rate, Scope, Scopes, Unauthenticated};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;
use subtle::ConstantTimeEq as _;

use crate::clock::Clock;
use crate::file::{Record, Stamp, TokenError, TokenStore, Unreadable};
use crate::grant;
use crate::secret::{Digest, Secret};

/// A change of the files beside the daemon is in force after this at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// An older look is one that no request has renewed for a while. Then all requests wait for the next look.
const TOO_OLD: Duration = Duration::from_millis(1250);
/// Time for which tokens stay in force that the disk does not give any more for a reason that may pass.
const BORNE: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Longest time for which requests wait for the files. A card that hangs must not hold up callers with a token.
const PATIENCE: Duration = Duration::from_secs(2);

/// The tokens in force.
pub(crate) struct ActiveTokens(Arc<Files>);

struct Files {
    store: TokenStore,
    scopes: Arc<[Scope]>,
    looked: Mutex<RefreshState>,
    /// A look has ended.
    ended: Condvar,
}

struct RefreshState {
    /// The time at which the last look that has ended began, by the daemon's clock.
    at: Duration,
    /// The look that is under way: its number, and when it began.
    under_way: Option<(u64, Instant)>,
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
    pub(crate) fault: Option<String>,
    /// Since then a file could not be read for a reason that may pass.
    borne_since: Option<Instant>,
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

impl ActiveTokens {
    /// Reads the tokens of a data folder.
    pub(crate) fn of(store: TokenStore, scopes: Arc<[Scope]>, clock: &dyn Clock) -> Self {
        let looked = RefreshState {
            at: clock.monotonic(),
            under_way: None,
            begun: 0,
            ended: 0,
            stamps: None,
            tokens: Arc::default(),
        };
        let (looked, ended) = (Mutex::new(looked), Condvar::new());
        let files = Files { store, scopes, looked, ended };
        let look = files.lock().begin(clock.monotonic());
        files.read(look, None);
        Self(Arc::new(files))
    }

    pub(crate) fn store(&self) -> &TokenStore {
        &self.0.store
    }

    /// Returns the tokens in force. A thread of its own looks at the files. The request that begins a look waits for it, as
    /// long as a disk that answers may take; others do where what is known is older than it may be.
    pub(crate) fn tokens(&self, clock: &dyn Clock) -> Arc<Tokens> {
        let mut looked = self.0.lock();
        let now = clock.monotonic();
        let age = now.saturating_sub(looked.at);
        let mut waits = age >= TOO_OLD;
        if looked.under_way.is_none() && age >= LOOK_EVERY {
            let files = self.0.clone();
            let look = looked.begin(now);
            let builder = std::thread::Builder::new().name("omird-keys".to_owned());
            match builder.spawn(move || files.read(look, None)) {
                Ok(_) => waits = true,
                // No thread to be had: it is tried again with the next request.
                Err(_) => looked.under_way = None,
            }
        }
        let left = looked.under_way.and_then(|(_, began)| PATIENCE.checked_sub(began.elapsed()));
        if let Some(left) = left.filter(|_| waits) {
            self.0.ended.wait_while_for(&mut looked, |it| it.under_way.is_some(), left);
        }
        looked.tokens.clone()
    }

    /// Reads the files again at once: this daemon has changed them. The token `revoked` is in force no longer, also where
    /// the disk does not give the file now.
    pub(crate) fn refresh(&self, clock: &dyn Clock, revoked: Option<&str>) {
        let look = self.0.lock().begin(clock.monotonic());
        self.0.read(look, revoked);
    }
}

impl Files {
    fn lock(&self) -> MutexGuard<'_, RefreshState> {
        self.looked.lock()
    }

    /// Reads the files if they have changed, in the look that [`RefreshState::begin`] gave. Nothing is locked meanwhile; of two
    /// looks at once the one that began last counts.
    fn read(&self, look: Look, revoked: Option<&str>) {
        // However it ends: a look that never ended would be the last.
        let _ending = RefreshGuard { files: self, look: look.number };
        // Taken before reading: a file that changes meanwhile is read once more.
        let stamps = self.store.stamps();
        let read = (look.stamps.as_ref() != Some(&stamps)).then(|| {
            let (mut tokens, is_whole) = Tokens::read(&self.store, &self.scopes, &look.tokens);
            tokens.tokens.retain(|token| is_whole || revoked != Some(&*token.caller.name));
            (tokens, is_whole)
        });
        let mut looked = self.lock();
        if look.number <= looked.ended {
            return;
        }
        looked.ended = look.number;
        looked.at = looked.at.max(look.at);
        if let Some((tokens, is_whole)) = read {
            looked.stamps = is_whole.then_some(stamps);
            looked.tokens = Arc::new(tokens);
        }
    }
}

/// What a look begins with.
struct Look {
    number: u64,
    at: Duration,
    stamps: Option<[Option<Stamp>; 2]>,
    tokens: Arc<Tokens>,
}

impl RefreshState {
    fn begin(&mut self, now: Duration) -> Look {
        self.begun += 1;
        self.under_way = Some((self.begun, Instant::now()));
        let (stamps, tokens) = (self.stamps, self.tokens.clone());
        Look { number: self.begun, at: now, stamps, tokens }
    }
}

/// The end of a look.
struct RefreshGuard<'a> {
    files: &'a Files,
    look: u64,
}

impl Drop for RefreshGuard<'_> {
    fn drop(&mut self) {
        let mut looked = self.files.lock();
        if looked.under_way.is_some_and(|(look, _)| look == self.look) {
            looked.under_way = None;
        }
        drop(looked);
        self.files.ended.notify_all();
    }
}

impl Tokens {
    /// Reads the files, and returns true if the disk gave both. What it does not give for now, for want of a descriptor
    /// above all, stays as it was `before` for a moment: a passing fault locks no caller out, and keeps none in.
    fn read(store: &TokenStore, known: &[Scope], before: &Self) -> (Self, bool) {
        // With the card out no token can be revoked, and what can still be served is served to the same callers.
        if before.count() > 0 && store.is_away() {
            let at = store.local();
            let folder = at.parent().unwrap_or(&at).display();
            let fault =
                format!("{folder} is away; the tokens read before stay in force until it is back");
            if before.fault.as_ref() != Some(&fault) {
                tracing::error!("{fault}");
            }
            let (tokens, local) = (before.tokens.clone(), before.local);
            return (Self { tokens, local, fault: Some(fault), borne_since: None }, false);
        }
        let now = Instant::now();
        let is_borne = before.borne_since.is_none_or(|since| now - since < BORNE);
        let mut fault = Vec::new();
        let mut is_whole = true;
        let mut bear = |message: String, error: Option<&io::Error>| {
            let passes = error.is_some_and(may_pass);
            is_whole &= !passes;
            let stays = passes && is_borne;
            let rest =
                if stays { "; what was read before stays in force for a moment" } else { "" };
            fault.push(format!("{message}{rest}"));
            stays
        };
        let tokens = match store.list() {
            Ok(records) => records.iter().filter_map(|record| Token::of(record, known)).collect(),
            Err(error) => {
                let disk = match &error {
                    TokenError::Unreadable(_, Unreadable::Disk(why)) => Some(why),
                    _ => None,
                };
                if bear(error.to_string(), disk) { before.tokens.clone() } else { Vec::new() }
            }
        };
        let local = match store.local_secret() {
            Ok(secret) => secret.map(|secret| secret.digest()),
            Err(error) => {
                let message = format!("{}: {error}", store.local().display());
                let stays = bear(message, Some(&error));
                before.local.filter(|_| stays)
            }
        };
        let fault = (!fault.is_empty()).then(|| fault.join("; "));
        if let Some(fault) = fault.as_ref().filter(|_| fault != before.fault) {
            tracing::error!("{fault}");
        }
        let borne_since = (!is_whole).then(|| before.borne_since.unwrap_or(now));
        (Self { tokens, local, fault, borne_since }, is_whole)
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
    let wants_room = |code| matches!(Errno::from_raw_os_error(code), Errno::MFILE | Errno::NFILE);
    error.raw_os_error().is_some_and(wants_room)
        || matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::Interrupted)
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
            has_token: true,
            ..Caller::trusted("", grant.name.as_str())
        };
        Some(Self { digest: record.digest()?, expires: grant.expires, caller })
    }
}
