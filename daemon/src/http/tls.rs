//! TLS, by files that may change while the daemon runs: a certificate that is renewed is shown to the next client.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use super::TlsFiles;

/// The files are looked at again after this time, once a client comes.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A file of TLS that cannot be used.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read, or is no PEM of what it should be.
    File {
        /// The file.
        file: PathBuf,
        /// The thing that it should hold.
        expected: &'static str,
        /// The fault.
        error: pem::Error,
    },
    /// The certificate and the key do not fit, or are of a kind that is not known.
    Pair(rustls::Error),
    /// The authorities of clients cannot be used.
    Clients(VerifierBuilderError),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, expected, error } => {
                let file = file.display();
                match error {
                    pem::Error::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                        write!(f, "{file}: there is no such file; it should hold {expected} in PEM")
                    }
                    pem::Error::Io(error) => write!(f, "{file}: {error}"),
                    pem::Error::NoItemsFound => {
                        write!(f, "{file}: expected {expected} in PEM, and found none")
                    }
                    error => write!(f, "{file}: {error}; it should hold {expected} in PEM"),
                }
            }
            Self::Pair(error) => {
                write!(f, "certificate and key cannot be used together: {error}")
            }
            Self::Clients(error) => write!(f, "the authorities of clients: {error}"),
        }
    }
}

impl std::error::Error for TlsError {}

impl TlsError {
    /// Returns the file that cannot be used, if it is one alone.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File { file, .. } => Some(file),
            Self::Pair(_) | Self::Clients(_) => None,
        }
    }
}

impl TlsFiles {
    /// Reads the files, and drops what is in them.
    ///
    /// # Errors
    /// Names the file and says what is wrong with it.
    pub fn check(&self) -> Result<(), TlsError> {
        config(self).map(drop)
    }

    /// Returns the key of the configuration that names a file.
    pub fn key_of(&self, file: &Path) -> Option<&'static str> {
        let named = [
            (Some(&self.certificate), "http.tls.certificate"),
            (Some(&self.key), "http.tls.key"),
            (self.client_ca.as_ref(), "http.tls.client_ca"),
        ];
        named.iter().find(|(known, _)| known.is_some_and(|it| it == file)).map(|(_, key)| *key)
    }
}

/// The files, and what was made of them.
pub(super) struct Tls {
    files: TlsFiles,
    now: Mutex<Now>,
}

struct Now {
    config: Arc<ServerConfig>,
    /// As the files were when it was made.
    seen: Vec<Option<Seen>>,
    /// The fault of the files since then.
    fault: Option<String>,
    looked: Instant,
}

/// A state of a file: its inode, size, and the times at which its contents and its rights were changed.
type Seen = (u64, u64, [(i64, i64); 2]);

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// Names the file and says what is wrong with it.
    pub(super) fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        // Before they are read: a change in between is seen afterwards.
        let seen = seen(files);
        let config = config(files)?;
        let now = Mutex::new(Now { config, seen, fault: None, looked: Instant::now() });
        Ok(Self { files: files.clone(), now })
    }

    /// Returns the configuration for the next client. The files are read again if they have changed; where they are faulty
    /// now, the one before is kept.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        let mut now = self.now.lock();
        if now.looked.elapsed() >= LOOK_AGAIN {
            self.look(&mut now, false);
        }
        now.config.clone()
    }

    /// Reads the files again, at the operator's request.
    pub(super) fn reload(&self) {
        self.look(&mut self.now.lock(), true);
    }

    fn look(&self, now: &mut Now, anyway: bool) {
        now.looked = Instant::now();
        let seen = seen(&self.files);
        if seen == now.seen && !anyway {
            return;
        }
        match config(&self.files) {
            Ok(config) => {
                (now.config, now.seen) = (config, seen);
                tracing::info!("http: the certificate was read again");
            }
            Err(error) => {
                // A certificate that is faulty for a passing reason is read again once a client comes. The log says it
                // once.
                let message = error.to_string();
                if anyway || now.fault.as_ref() != Some(&message) {
                    tracing::error!("http: the certificate that runs is kept: {message}");
                }
                now.fault = Some(message);
                return;
            }
        }
        now.fault = None;
    }
}

fn seen(files: &TlsFiles) -> Vec<Option<Seen>> {
    let all = [Some(&files.certificate), Some(&files.key), files.client_ca.as_ref()];
    let of = |file: &PathBuf| {
        let found = std::fs::metadata(file).ok()?;
        let times = [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())];
        Some((found.ino(), found.len(), times))
    };
    all.into_iter().flatten().map(of).collect()
}

fn config(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| fault(&files.key, "a private key", error))?;
    // Named, because more than one may be linked in.
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(TlsError::Pair)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().map_err(TlsError::Clients)?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fault = |error| fault(file, "a certificate", error);
    let all = CertificateDer::pem_file_iter(file).map_err(fault)?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(fault)?;
    if all.is_empty() { Err(fault(pem::Error::NoItemsFound)) } else { Ok(all) }
}

fn fault(file: &Path, expected: &'static str, error: pem::Error) -> TlsError {
    TlsError::File { file: file.to_owned(), expected, error }
}
