#![cfg_attr(feature = "libfuzzer", no_main)]

codewright_fuzz::target!(|bytes| {
    let [content, patch] = codewright_fuzz::texts(bytes);
    codewright_tools::trial::patch(&patch, &content);
});
