#![cfg_attr(feature = "libfuzzer", no_main)]

codewright_fuzz::target!(|bytes| {
    let [pattern, text] = codewright_fuzz::texts(bytes);
    codewright_engine::trial::wildcard(&pattern, &text);
});
