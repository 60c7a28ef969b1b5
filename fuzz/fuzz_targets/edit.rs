#![cfg_attr(feature = "libfuzzer", no_main)]

codewright_fuzz::target!(|bytes| {
    let [old, new, content] = codewright_fuzz::texts(bytes);
    codewright_tools::trial::edit(&content, &old, &new);
});
