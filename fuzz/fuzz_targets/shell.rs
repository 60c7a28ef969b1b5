#![cfg_attr(feature = "libfuzzer", no_main)]

codewright_fuzz::target!(|bytes| codewright_tools::trial::shell(&codewright_fuzz::text(bytes)));
