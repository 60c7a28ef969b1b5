//! Signatures in the format of minisign, whose own program and `codewright upgrade` check them.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

/// The name of the algorithm, which signs the bytes themselves.
const ALGORITHM: &[u8; 2] = b"Ed";
/// The length of the content of a secret key: algorithms, parameters of the encryption, number, seed, public key, checksum.
const SECRET_BYTES: usize = 158;
const NUMBER_BYTES: usize = 8;
const NUMBER_AT: usize = 54;
const SEED_AT: usize = NUMBER_AT + NUMBER_BYTES;
const SEED_BYTES: usize = 32;

/// A secret key.
pub(super) struct Signer {
    number: [u8; NUMBER_BYTES],
    pair: Ed25519KeyPair,
}

impl Signer {
    /// Reads a key that `minisign -G -W` wrote, which has no password. Servers that build releases keep it as a secret.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let line = text.lines().nth(1).context("the key has no second line")?;
        let bytes = STANDARD.decode(line.trim()).context("the key is damaged")?;
        ensure!(
            bytes.len() == SECRET_BYTES && bytes.starts_with(ALGORITHM),
            "this is not a secret key of minisign"
        );
        ensure!(bytes[2..4] == [0, 0], "the key has a password; make one without: minisign -G -W");
        let number = bytes[NUMBER_AT..SEED_AT].try_into()?;
        Self::new(number, &bytes[SEED_AT..SEED_AT + SEED_BYTES])
    }

    /// A key from its seed.
    pub(super) fn new(number: [u8; NUMBER_BYTES], seed: &[u8]) -> Result<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok().context("the key is damaged")?;
        Ok(Self { number, pair })
    }

    /// The public key, as minisign prints it.
    pub(super) fn public_key(&self) -> Result<String> {
        let parts: [&[u8]; 3] = [ALGORITHM, &self.number, self.pair.public_key().as_ref()];
        Ok(STANDARD.encode(parts.concat()))
    }

    /// The file with the signature of some bytes. `comment` is signed, too.
    pub(super) fn sign(&self, bytes: &[u8], comment: &str) -> Result<String> {
        let signature = self.pair.sign(bytes);
        let line = STANDARD.encode([ALGORITHM, self.number.as_slice(), signature.as_ref()].concat());
        let whole = self.pair.sign(&[signature.as_ref(), comment.as_bytes()].concat());
        let whole = STANDARD.encode(whole.as_ref());
        Ok(format!(
            "untrusted comment: signature of codewright\n{line}\ntrusted comment: {comment}\n{whole}\n"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_accepts_the_signatures() {
        let signer = Signer::new([7; 8], &[3; 32]).unwrap();
        let key = minisign_verify::PublicKey::from_base64(&signer.public_key().unwrap()).unwrap();
        let signature =
            minisign_verify::Signature::decode(&signer.sign(b"text", "version 1").unwrap()).unwrap();
        assert!(key.verify(b"text", &signature, true).is_ok());
        assert!(key.verify(b"other", &signature, true).is_err());
    }
}
