#![cfg_attr(feature = "libfuzzer", no_main)]

codewright_fuzz::target!(|bytes| codewright_tools::trial::page(&codewright_fuzz::text(bytes)));
