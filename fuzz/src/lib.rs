//! Support for the fuzz targets: the conversion of bytes to texts, and a runner without a fuzzer.

/// Converts bytes to text. Invalid bytes become the replacement character.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Splits bytes into this many texts at zero bytes. Missing texts are empty.
pub fn texts<const N: usize>(bytes: &[u8]) -> [String; N] {
    let mut pieces = bytes.splitn(N, |byte| *byte == 0).map(text);
    std::array::from_fn(|_| pieces.next().unwrap_or_default())
}

/// Defines the program for a function of bytes: the fuzz target, or without a fuzzer a program that reads files.
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
