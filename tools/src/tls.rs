//! TLS of a client of HTTP: the certificates that it trusts, and the meaning of a failed handshake.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, AlertDescription, CertificateError, ClientConfig, RootCertStore};

use crate::error::{Error, Result};

/// Longest time of a handshake. A port that only listens would be waited for without an end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The certificate that is shown, and its key, as files in PEM.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
}

/// The client's side of TLS to one host, whose certificate must bear its name.
pub(crate) struct Tls {
    connector: TlsConnector,
    host: ServerName<'static>,
    authorities: PathBuf,
}

impl Tls {
    /// Trusts the authorities of a file in PEM alone, and shows a certificate if there is one to show.
    ///
    /// # Errors
    /// A file cannot be read or does not hold what it should, or `host` is neither a name nor an address.
    pub(crate) fn of(host: &str, authorities: &Path, shown: Option<Shown<'_>>) -> Result<Self> {
        let holds = "the certificate of the authority that signed the daemon's";
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authorities, holds)? {
            roots.add(certificate).map_err(|why| wrong(authorities, holds, &why))?;
        }
        let no_versions = |why: rustls::Error| Error::Unreachable(format!("no TLS: {why}"));
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(no_versions)?
            .with_root_certificates(roots);
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some(Shown { certificate, key: file }) => {
                let chain = certificates(certificate, "the certificate of this client")?;
                let holds = "the key of --cert";
                let pem = std::fs::read(file).map_err(|why| wrong(file, holds, &why))?;
                let key = PrivateKeyDer::from_pem_slice(&pem);
                let key = key.map_err(|why| wrong(file, holds, &why))?;
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|why| wrong(file, holds, &why))?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = ServerName::try_from(bare.to_owned())
            .map_err(|_| Error::Usage(format!("--url: {host} is neither a name nor an address")))?;
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { connector, host, authorities: authorities.to_owned() })
    }

    /// Shakes hands.
    ///
    /// # Errors
    /// The other end speaks no TLS, is not who it should be, or does not answer.
    pub(crate) async fn over(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let handshake = self.connector.connect(self.host.clone(), stream);
        tokio::time::timeout(PATIENCE, handshake).await.unwrap_or_else(|_| {
            let why = format!("no TLS handshake within {} s", PATIENCE.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        })
    }

    /// The fault of a handshake, with what to do; `None` for what is no fault of TLS.
    pub(crate) fn fault(&self, why: &io::Error) -> Option<String> {
        let fault = cause(why)?;
        let authorities = self.authorities.display();
        let host = self.host.to_str();
        Some(match fault {
            rustls::Error::InvalidCertificate(fault) => match fault {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
                    "its certificate was signed by none of the authorities in {authorities}. Name the file of the one \
                     that did with --ca"
                ),
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => format!(
                    "its certificate is not for {host} ({fault}). Name it in --url as the certificate does, or make a \
                     certificate with subjectAltName {host}"
                ),
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => {
                    format!("{fault}. Renew it, or set the clock of this machine")
                }
                _ => format!(
                    "{fault}. A certificate that signs itself must not be an authority (CA:FALSE): give --ca the one \
                     that signed it"
                ),
            },
            rustls::Error::InvalidMessage(_) => {
                format!(
                    "what answers there speaks no TLS ({fault}). If it is a daemon without TLS, use http:// in --url"
                )
            }
            // By TLS 1.3 the daemon looks at the certificate of a client once that takes the handshake for done.
            rustls::Error::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateExpired
                | AlertDescription::DecryptError
                | AlertDescription::UnknownCA,
            ) => format!(
                "it asks for the certificate of a client, and does not take what it is shown ({fault}). Name one that \
                 was signed by its [http] client_ca with --cert and --key"
            ),
            _ => fault.to_string(),
        })
    }
}

/// The fault of TLS in an error, however often that was wrapped on its way.
fn cause(why: &io::Error) -> Option<&rustls::Error> {
    let mut error: &(dyn std::error::Error + 'static) = why;
    loop {
        if let Some(fault) = error.downcast_ref() {
            return Some(fault);
        }
        // The source of an error of I/O is that of the error in it.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        error = match inner {
            Some(inner) => inner,
            None => error.source()?,
        };
    }
}

fn wrong(file: &Path, holds: &str, why: &dyn std::fmt::Display) -> Error {
    Error::input(file, format!("{why}; it should hold {holds}, in PEM"))
}

fn certificates(file: &Path, holds: &str) -> Result<Vec<CertificateDer<'static>>> {
    // Apart from the reader of PEM, whose errors name no cause that a person knows.
    let pem = std::fs::read(file).map_err(|why| wrong(file, holds, &why))?;
    let all = CertificateDer::pem_slice_iter(&pem).collect::<std::result::Result<Vec<_>, _>>();
    let all = all.map_err(|why| wrong(file, holds, &why))?;
    if all.is_empty() { Err(wrong(file, holds, &"no certificate is in it")) } else { Ok(all) }
}
