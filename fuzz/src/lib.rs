//! What the targets share: how bytes become texts, and a way to run them without a fuzzer.

/// Bytes as a text; what is no text is told by the replacement character.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes as so many texts, cut at zero bytes; those that are missing are empty.
pub fn texts<const N: usize>(bytes: &[u8]) -> [String; N] {
    let mut pieces = bytes.splitn(N, |byte| *byte == 0).map(text);
    std::array::from_fn(|_| pieces.next().unwrap_or_default())
}

/// Makes a program of a function of bytes: under the fuzzer its target, else one that reads files.
#[macro_export]
macro_rules! target {
    ($run:expr) => {
        #[cfg(feature = "libfuzzer")]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            let run: fn(&[u8]) = $run;
            run(bytes);
        });

        #[cfg(not(feature = "libfuzzer"))]
        fn main() -> std::io::Result<()> {
            let run: fn(&[u8]) = $run;
            for path in std::env::args_os().skip(1) {
                run(&std::fs::read(path)?);
            }
            Ok(())
        }
    };
}
