//! TLS of the bridge: whom it trusts, and what a handshake that fails means.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore};

use crate::error::{Error, Result};

/// Longest time of a handshake. A port that only listens would be waited for without an end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The client's side of TLS to one host, whose certificate must bear its name.
pub(super) struct Tls {
    connector: TlsConnector,
    host: ServerName<'static>,
    authorities: PathBuf,
}

impl Tls {
    /// Trusts the authorities of a file in PEM alone.
    ///
    /// # Errors
    /// The file cannot be read or holds no certificate, or `host` is neither a name nor an address.
    pub(super) fn of(host: &str, authorities: &Path) -> Result<Self> {
        let holds =
            "it should hold the certificate of the authority that signed the daemon's, in PEM";
        let wrong =
            |why: &dyn std::fmt::Display| Error::input(authorities, format!("{why}; {holds}"));
        // Apart from the reader of PEM, whose errors name no cause that a person knows.
        let pem = std::fs::read(authorities).map_err(|why| wrong(&why))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|why| wrong(&why))?;
            roots.add(certificate).map_err(|why| wrong(&why))?;
        }
        if roots.is_empty() {
            return Err(wrong(&"no certificate is in it"));
        }
        let no_versions = |why: rustls::Error| Error::Unreachable(format!("no TLS: {why}"));
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(no_versions)?
            .with_root_certificates(roots)
            .with_no_client_auth();
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
    pub(super) async fn over(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let handshake = self.connector.connect(self.host.clone(), stream);
        tokio::time::timeout(PATIENCE, handshake).await.unwrap_or_else(|_| {
            let why = format!("no TLS handshake within {} s", PATIENCE.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        })
    }

    /// The fault of a handshake, with what to do; `None` for what is no fault of TLS.
    pub(super) fn fault(&self, why: &io::Error) -> Option<String> {
        let fault = why.get_ref()?.downcast_ref::<rustls::Error>()?;
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
            _ => fault.to_string(),
        })
    }
}
