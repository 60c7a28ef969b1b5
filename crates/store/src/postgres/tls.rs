//! TLS connections to the database, as the connection's options demand.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WantsClientCert;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

/// What of the server's certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing.
    Nothing,
    /// That one of these authorities has signed it.
    Authority(Roots),
    /// That one of these authorities has signed it for the host.
    Host(Roots),
}

/// The trusted authorities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those of the system.
    System,
    /// Those of a file.
    File(PathBuf),
}

/// The certificate of the user, for servers that ask for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// The file of the certificate, with those of the authorities above it.
    pub(super) certificate: PathBuf,
    /// The file of its private key.
    pub(super) key: PathBuf,
}

/// Makes TLS connections.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub(super) fn new(check: &Check, identity: Option<&Identity>) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = match check {
            Check::Host(roots) => identified(builder.with_root_certificates(roots.load()?), identity)?,
            Check::Nothing | Check::Authority(_) => {
                let authority = match check {
                    Check::Authority(roots) => {
                        let roots = Arc::new(roots.load()?);
                        let built =
                            WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
                        Some(built.map_err(|error| error.to_string())?)
                    }
                    Check::Nothing | Check::Host(_) => None,
                };
                let verifier = Arc::new(WithoutHost { authority, provider });
                identified(builder.dangerous().with_custom_certificate_verifier(verifier), identity)?
            }
        };
        Ok(Self(Arc::new(config)))
    }
}

/// Completes a configuration with the certificate of the user.
fn identified(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<&Identity>,
) -> Result<ClientConfig, String> {
    let Some(Identity { certificate, key }) = identity else { return Ok(builder.with_no_client_auth()) };
    let unreadable = |what: &str, path: &Path, error: &dyn fmt::Display| {
        format!("the {what} in `{}` cannot be used: {error}", path.display())
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| unreadable("certificate", certificate, &error))?;
    if chain.is_empty() {
        return Err(format!("there is no certificate in `{}`", certificate.display()));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("private key", key, &error))?;
    builder.with_client_auth_cert(chain, private).map_err(|error| unreadable("private key", key, &error))
}

impl Roots {
    fn load(&self) -> Result<RootCertStore, String> {
        let mut store = RootCertStore::empty();
        match self {
            Self::System => {
                let found = rustls_native_certs::load_native_certs();
                store.add_parsable_certificates(found.certs);
                if store.is_empty() {
                    return Err("the system has no certificates of authorities".to_owned());
                }
            }
            Self::File(path) => {
                let unreadable = |error: &dyn fmt::Display| {
                    format!("the certificates in `{}` cannot be read: {error}", path.display())
                };
                let read = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?;
                for certificate in read {
                    let certificate = certificate.map_err(|error| unreadable(&error))?;
                    store.add(certificate).map_err(|error| unreadable(&error))?;
                }
                if store.is_empty() {
                    return Err(format!("there is no certificate in `{}`", path.display()));
                }
            }
        }
        Ok(store)
    }
}

/// Checks the authority of a certificate or nothing, but not its host.
#[derive(Debug)]
struct WithoutHost {
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for WithoutHost {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        // The host is checked last, so this error means that the rest is good.
        match authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Connect> {
        // A socket has no name, and no TLS either.
        Ok(Connect { config: Arc::clone(&self.0), name: ServerName::try_from(domain.to_owned()).ok() })
    }
}

/// A TLS connection to one host.
pub(super) struct Connect {
    config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

impl<S> TlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let no_name =
                || io::Error::new(io::ErrorKind::InvalidInput, "the host's name is not valid for TLS");
            let name = self.name.ok_or_else(no_name)?;
            Ok(Stream(TlsConnector::from(self.config).connect(name, stream).await?))
        })
    }
}

/// An encrypted stream.
pub(super) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
