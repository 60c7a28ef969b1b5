//! The table of known servers: their files, roots and start commands, and what to install.

/// A known server.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) id: &'static str,
    /// Ends of file names. One without a dot is a whole name.
    pub(crate) extensions: &'static [&'static str],
    /// The commands that start it. The first one whose program is found is used.
    pub(crate) commands: &'static [&'static [&'static str]],
    pub(crate) root: Root,
    /// It is not used below a directory with one of these files.
    pub(crate) unless: &'static [&'static str],
    /// What the user installs.
    pub(crate) install: &'static str,
    /// What the program can install.
    pub(crate) npm: Option<Npm>,
    /// The settings without which it does nothing, in JSON.
    pub(crate) settings: Option<&'static str>,
    pub(crate) role: Role,
    pub(crate) loads: Loads,
}

/// What a server loads and runs of the project that it works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loads {
    /// It only reads files.
    Nothing,
    /// It runs code of the project if one of these exists in the root or above it. A file can be followed by a word that
    /// it must contain.
    Present(&'static [(&'static str, &'static str)]),
    /// Settings of the project can lead it to run a program of the project. It works without that program.
    Perhaps,
    /// It runs build scripts, plugins or macros of the project.
    Always,
}

/// Packages of the project, from which servers for scripts load compilers, rules and plugins.
const MODULES: Loads = Loads::Present(&[
    ("node_modules", ""),
    (".pnp.cjs", ""),
    (".pnp.js", ""),
    (".yarn", ""),
    ("eslint.config.js", ""),
    ("eslint.config.mjs", ""),
    ("eslint.config.cjs", ""),
    ("eslint.config.ts", ""),
    (".eslintrc.js", ""),
    (".eslintrc.cjs", ""),
    ("svelte.config.js", ""),
    ("svelte.config.mjs", ""),
    ("astro.config.mjs", ""),
]);
/// Interpreters of the project, which servers for Python start.
const INTERPRETERS: Loads = Loads::Present(&[
    (".venv", ""),
    ("venv", ""),
    ("pyrightconfig.json", ""),
    ("ty.toml", ""),
    ("pyproject.toml", "tool.pyright"),
    ("pyproject.toml", "tool.basedpyright"),
    ("pyproject.toml", "tool.ty"),
]);
/// Settings that name programs or plugins of the project.
const LUA: Loads = Loads::Present(&[(".luarc.json", "plugin"), (".luarc.jsonc", "plugin"), (".vscode", "")]);

/// The npm packages of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Npm {
    /// The package with the server's program, and others that it needs, each with a range of versions. The program is
    /// that of the server's first command.
    pub(crate) packages: &'static [&'static str],
    /// The package in the project without which the server is of no use.
    pub(crate) of_project: Option<&'static str>,
}

/// How the root of a file is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// The directory of the instance.
    Directory,
    /// The nearest directory with one of the files of the first group, or of the next group. Otherwise the directory of
    /// the instance.
    Nearest(&'static [&'static [&'static str]]),
    /// The nearest directory with one of the files. Without one the server is not used.
    Required(&'static [&'static str]),
    /// The nearest directory whose file of this name contains a word, or else the nearest one with the file.
    Containing { file: &'static str, word: &'static str },
}

/// Whether a missing program is a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The main server of its files.
    Main,
    /// One that a project may use in addition.
    Additional,
}

const SCRIPTS: &[&str] = &[".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts"];
const SCRIPTS_AND_VUE: &[&str] = &[".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue"];
const LOCKS: &[&str] = &["package-lock.json", "bun.lockb", "bun.lock", "pnpm-lock.yaml", "yarn.lock"];
const DENO: &[&str] = &["deno.json", "deno.jsonc"];
const PACKAGE: &[&[&str]] = &[LOCKS, &["package.json"]];

const fn main(
    id: &'static str,
    extensions: &'static [&'static str],
    commands: &'static [&'static [&'static str]],
    root: Root,
    install: &'static str,
) -> Known {
    Known {
        id,
        extensions,
        commands,
        root,
        unless: &[],
        install,
        npm: None,
        settings: None,
        role: Role::Main,
        loads: loads(id),
    }
}

/// What a known server loads. One that is not in this list runs code of the project.
const fn loads(id: &str) -> Loads {
    match id.as_bytes() {
        b"gopls" | b"clangd" => Loads::Perhaps,
        b"deno" | b"yaml-ls" | b"php intelephense" | b"bash" | b"dockerfile" | b"texlab" | b"gleam"
        | b"tinymist" => Loads::Nothing,
        b"typescript" | b"vue" | b"eslint" | b"oxlint" | b"biome" | b"svelte" | b"astro" | b"prisma" => {
            MODULES
        }
        b"pyright" | b"ty" => INTERPRETERS,
        b"lua-ls" => LUA,
        _ => Loads::Always,
    }
}

/// The settings that editors send to the server of ESLint.
const ESLINT: &str = r#"{"validate": "on", "run": "onType", "nodePath": "", "quiet": false, "onIgnoredFiles": "off",
    "rulesCustomizations": [], "useESLintClass": false, "experimental": {}, "problems": {"shortenToSingleLine": false},
    "workingDirectory": {"mode": "location"}, "codeAction": {}, "codeActionOnSave": {"enable": false}, "format": false}"#;

const fn npm(packages: &'static [&'static str]) -> Option<Npm> {
    Some(Npm { packages, of_project: None })
}

/// The known servers.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        unless: DENO,
        npm: npm(&["typescript-language-server@^5", "typescript@^5"]),
        ..main(
            "typescript",
            SCRIPTS,
            &[&["typescript-language-server", "--stdio"]],
            Root::Nearest(&[LOCKS, &["tsconfig.json", "jsconfig.json", "package.json"]]),
            "npm install -g typescript typescript-language-server",
        )
    },
    main(
        "deno",
        &[".ts", ".tsx", ".js", ".jsx", ".mjs"],
        &[&["deno", "lsp"]],
        Root::Required(DENO),
        "https://deno.com",
    ),
    Known {
        // Later versions need a TypeScript server of their client. It is not installed, because it depends on a package of
        // a git repository.
        settings: Some(r#"{"vue": {"hybridMode": false}}"#),
        ..main(
            "vue",
            &[".vue"],
            &[&["vue-language-server", "--stdio"]],
            Root::Nearest(PACKAGE),
            "npm install -g @vue/language-server@2",
        )
    },
    Known {
        role: Role::Additional,
        npm: Some(Npm { packages: &["vscode-langservers-extracted@^4"], of_project: Some("eslint") }),
        settings: Some(ESLINT),
        ..main(
            "eslint",
            SCRIPTS_AND_VUE,
            &[&["vscode-eslint-language-server", "--stdio"]],
            Root::Nearest(PACKAGE),
            "npm install -g vscode-langservers-extracted",
        )
    },
    Known {
        role: Role::Additional,
        ..main(
            "oxlint",
            &[".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".astro", ".svelte"],
            &[&["oxc_language_server"], &["oxlint", "--lsp"]],
            Root::Required(&[".oxlintrc.json"]),
            "npm install -D oxlint",
        )
    },
    Known {
        role: Role::Additional,
        ..main(
            "biome",
            &[
                ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json", ".jsonc", ".vue",
                ".astro", ".svelte", ".css", ".graphql", ".gql", ".html",
            ],
            &[&["biome", "lsp-proxy", "--stdio"]],
            Root::Required(&["biome.json", "biome.jsonc"]),
            "npm install -D @biomejs/biome",
        )
    },
    main(
        "gopls",
        &[".go"],
        &[&["gopls"]],
        Root::Nearest(&[&["go.work"], &["go.mod", "go.sum"]]),
        "go install golang.org/x/tools/gopls@latest",
    ),
    main(
        "ruby-lsp",
        &[".rb", ".rake", ".gemspec", ".ru"],
        &[&["rubocop", "--lsp"], &["ruby-lsp"]],
        Root::Nearest(&[&["Gemfile"]]),
        "gem install rubocop",
    ),
    Known {
        npm: npm(&["pyright@^1"]),
        ..main(
            "pyright",
            &[".py", ".pyi"],
            &[&["pyright-langserver", "--stdio"], &["basedpyright-langserver", "--stdio"]],
            Root::Nearest(&[&[
                "pyproject.toml",
                "setup.py",
                "setup.cfg",
                "requirements.txt",
                "Pipfile",
                "pyrightconfig.json",
            ]]),
            "npm install -g pyright",
        )
    },
    main(
        "ty",
        &[".py", ".pyi"],
        &[&["ty", "server"]],
        Root::Nearest(&[&[
            "pyproject.toml",
            "ty.toml",
            "setup.py",
            "setup.cfg",
            "requirements.txt",
            "Pipfile",
            "pyrightconfig.json",
        ]]),
        "uv tool install ty",
    ),
    main(
        "elixir-ls",
        &[".ex", ".exs"],
        &[&["elixir-ls"], &["language_server.sh"]],
        Root::Nearest(&[&["mix.exs", "mix.lock"]]),
        "https://github.com/elixir-lsp/elixir-ls",
    ),
    main(
        "zls",
        &[".zig", ".zon"],
        &[&["zls"]],
        Root::Nearest(&[&["build.zig"]]),
        "https://github.com/zigtools/zls",
    ),
    main(
        "csharp",
        &[".cs", ".csx"],
        &[&["csharp-ls"], &["roslyn-language-server", "--stdio", "--autoLoadProjects"]],
        Root::Nearest(&[&["global.json"], &["Directory.Build.props"]]),
        "dotnet tool install -g csharp-ls",
    ),
    main(
        "fsharp",
        &[".fs", ".fsi", ".fsx", ".fsscript"],
        &[&["fsautocomplete"]],
        Root::Nearest(&[&["global.json"], &["Directory.Build.props"]]),
        "dotnet tool install -g fsautocomplete",
    ),
    main(
        "sourcekit-lsp",
        &[".swift", ".objc", ".objcpp"],
        &[&["sourcekit-lsp"]],
        Root::Nearest(&[&["Package.swift"]]),
        "the Swift toolchain from https://swift.org",
    ),
    main(
        "rust",
        &[".rs"],
        &[&["rust-analyzer"]],
        Root::Containing { file: "Cargo.toml", word: "[workspace]" },
        "rustup component add rust-analyzer",
    ),
    main(
        "clangd",
        &[".c", ".cpp", ".cc", ".cxx", ".c++", ".h", ".hpp", ".hh", ".hxx", ".h++"],
        &[&["clangd", "--background-index"]],
        Root::Nearest(&[
            &["compile_commands.json", "compile_flags.txt", ".clangd"],
            &["CMakeLists.txt", "Makefile"],
        ]),
        "clangd, with your package manager or from https://clangd.llvm.org",
    ),
    Known {
        npm: npm(&["svelte-language-server@^0.18"]),
        ..main(
            "svelte",
            &[".svelte"],
            &[&["svelteserver", "--stdio"]],
            Root::Nearest(PACKAGE),
            "npm install -g svelte-language-server",
        )
    },
    Known {
        npm: npm(&["@astrojs/language-server@^2", "typescript@^5"]),
        ..main(
            "astro",
            &[".astro"],
            &[&["astro-ls", "--stdio"]],
            Root::Nearest(PACKAGE),
            "npm install -g @astrojs/language-server",
        )
    },
    main(
        "jdtls",
        &[".java"],
        &[&["jdtls"]],
        Root::Nearest(&[
            &["settings.gradle", "settings.gradle.kts", "gradlew", "mvnw"],
            &["pom.xml", "build.gradle", "build.gradle.kts", ".project"],
        ]),
        "https://github.com/eclipse-jdtls/eclipse.jdt.ls",
    ),
    main(
        "kotlin-ls",
        &[".kt", ".kts"],
        &[&["kotlin-lsp", "--stdio"], &["kotlin-language-server"]],
        Root::Nearest(&[
            &["settings.gradle", "settings.gradle.kts", "gradlew"],
            &["build.gradle", "build.gradle.kts", "pom.xml"],
        ]),
        "https://github.com/Kotlin/kotlin-lsp",
    ),
    Known {
        npm: npm(&["yaml-language-server@^1"]),
        ..main(
            "yaml-ls",
            &[".yaml", ".yml"],
            &[&["yaml-language-server", "--stdio"]],
            Root::Nearest(PACKAGE),
            "npm install -g yaml-language-server",
        )
    },
    main(
        "lua-ls",
        &[".lua"],
        &[&["lua-language-server"]],
        Root::Nearest(&[&[
            ".luarc.json",
            ".luarc.jsonc",
            ".luacheckrc",
            ".stylua.toml",
            "stylua.toml",
            "selene.toml",
        ]]),
        "https://github.com/LuaLS/lua-language-server",
    ),
    Known {
        npm: npm(&["intelephense@^1"]),
        ..main(
            "php intelephense",
            &[".php"],
            &[&["intelephense", "--stdio"]],
            Root::Nearest(&[&["composer.json", "composer.lock", ".php-version"]]),
            "npm install -g intelephense",
        )
    },
    Known {
        npm: npm(&["@prisma/language-server@^31"]),
        ..main(
            "prisma",
            &[".prisma"],
            &[&["prisma-language-server", "--stdio"]],
            Root::Nearest(&[&["schema.prisma", "package.json"]]),
            "npm install -g @prisma/language-server",
        )
    },
    main(
        "dart",
        &[".dart"],
        &[&["dart", "language-server", "--lsp"]],
        Root::Nearest(&[&["pubspec.yaml", "analysis_options.yaml"]]),
        "https://dart.dev",
    ),
    main(
        "ocaml-lsp",
        &[".ml", ".mli"],
        &[&["ocamllsp"]],
        Root::Nearest(&[&["dune-project", "dune-workspace"], &[".merlin", "opam"]]),
        "opam install ocaml-lsp-server",
    ),
    Known {
        npm: npm(&["bash-language-server@^5"]),
        ..main(
            "bash",
            &[".sh", ".bash", ".zsh", ".ksh"],
            &[&["bash-language-server", "start"]],
            Root::Directory,
            "npm install -g bash-language-server",
        )
    },
    main(
        "terraform",
        &[".tf", ".tfvars"],
        &[&["terraform-ls", "serve"]],
        Root::Nearest(&[&[".terraform.lock.hcl", "terraform.tfstate"]]),
        "https://github.com/hashicorp/terraform-ls",
    ),
    main(
        "texlab",
        &[".tex", ".bib"],
        &[&["texlab"]],
        Root::Nearest(&[&[".latexmkrc", "latexmkrc", ".texlabroot", "texlabroot"]]),
        "https://github.com/latex-lsp/texlab",
    ),
    Known {
        npm: npm(&["dockerfile-language-server-nodejs@^0.15"]),
        ..main(
            "dockerfile",
            &[".dockerfile", "Dockerfile"],
            &[&["docker-langserver", "--stdio"]],
            Root::Directory,
            "npm install -g dockerfile-language-server-nodejs",
        )
    },
    main("gleam", &[".gleam"], &[&["gleam", "lsp"]], Root::Nearest(&[&["gleam.toml"]]), "https://gleam.run"),
    main(
        "clojure-lsp",
        &[".clj", ".cljs", ".cljc", ".edn"],
        &[&["clojure-lsp", "listen"]],
        Root::Nearest(&[&["deps.edn", "project.clj", "shadow-cljs.edn", "bb.edn", "build.boot"]]),
        "https://clojure-lsp.io",
    ),
    main(
        "nixd",
        &[".nix"],
        &[&["nixd"]],
        Root::Nearest(&[&["flake.nix"]]),
        "https://github.com/nix-community/nixd",
    ),
    main(
        "tinymist",
        &[".typ", ".typc"],
        &[&["tinymist"]],
        Root::Nearest(&[&["typst.toml"]]),
        "https://github.com/Myriad-Dreamin/tinymist",
    ),
    main(
        "haskell-language-server",
        &[".hs", ".lhs"],
        &[&["haskell-language-server-wrapper", "--lsp"]],
        Root::Nearest(&[&["stack.yaml", "cabal.project"], &["hie.yaml", "package.yaml"]]),
        "ghcup install hls",
    ),
    main(
        "julials",
        &[".jl"],
        &[&["julia", "--startup-file=no", "--history-file=no", "-e", "using LanguageServer; runserver()"]],
        Root::Nearest(&[&["Project.toml", "Manifest.toml"]]),
        "julia with the package LanguageServer",
    ),
];

/// The protocol's names of languages, by the end of a file's name.
const LANGUAGES: &[(&str, &str)] = &[
    (".ts", "typescript"),
    (".mts", "typescript"),
    (".cts", "typescript"),
    (".tsx", "typescriptreact"),
    (".js", "javascript"),
    (".mjs", "javascript"),
    (".cjs", "javascript"),
    (".jsx", "javascriptreact"),
    (".vue", "vue"),
    (".svelte", "svelte"),
    (".astro", "astro"),
    (".json", "json"),
    (".jsonc", "jsonc"),
    (".css", "css"),
    (".html", "html"),
    (".graphql", "graphql"),
    (".gql", "graphql"),
    (".go", "go"),
    (".rb", "ruby"),
    (".rake", "ruby"),
    (".gemspec", "ruby"),
    (".ru", "ruby"),
    (".py", "python"),
    (".pyi", "python"),
    (".ex", "elixir"),
    (".exs", "elixir"),
    (".zig", "zig"),
    (".zon", "zig"),
    (".cs", "csharp"),
    (".csx", "csharp"),
    (".fs", "fsharp"),
    (".fsi", "fsharp"),
    (".fsx", "fsharp"),
    (".fsscript", "fsharp"),
    (".swift", "swift"),
    (".objc", "objective-c"),
    (".objcpp", "objective-cpp"),
    (".rs", "rust"),
    (".c", "c"),
    (".h", "c"),
    (".cpp", "cpp"),
    (".cc", "cpp"),
    (".cxx", "cpp"),
    (".c++", "cpp"),
    (".hpp", "cpp"),
    (".hh", "cpp"),
    (".hxx", "cpp"),
    (".h++", "cpp"),
    (".java", "java"),
    (".kt", "kotlin"),
    (".kts", "kotlin"),
    (".yaml", "yaml"),
    (".yml", "yaml"),
    (".lua", "lua"),
    (".php", "php"),
    (".prisma", "prisma"),
    (".dart", "dart"),
    (".ml", "ocaml"),
    (".mli", "ocaml"),
    (".sh", "shellscript"),
    (".bash", "shellscript"),
    (".zsh", "shellscript"),
    (".ksh", "shellscript"),
    (".tf", "terraform"),
    (".tfvars", "terraform-vars"),
    (".tex", "latex"),
    (".bib", "bibtex"),
    (".dockerfile", "dockerfile"),
    ("Dockerfile", "dockerfile"),
    (".gleam", "gleam"),
    (".clj", "clojure"),
    (".cljs", "clojure"),
    (".cljc", "clojure"),
    (".edn", "clojure"),
    (".nix", "nix"),
    (".typ", "typst"),
    (".typc", "typst"),
    (".hs", "haskell"),
    (".lhs", "haskell"),
    (".jl", "julia"),
    (".md", "markdown"),
    (".toml", "toml"),
    (".xml", "xml"),
    (".sql", "sql"),
];

/// The protocol's name of a file's language.
pub(crate) fn language(name: &str) -> &'static str {
    let found = LANGUAGES.iter().filter(|(extension, _)| has_extension(name, extension));
    found.max_by_key(|(extension, _)| extension.len()).map_or("plaintext", |(_, language)| language)
}

/// Whether a file name has an extension, or is the name itself if that has no dot.
pub(crate) fn has_extension(name: &str, extension: &str) -> bool {
    // A file whose whole name is the extension, such as `.zig`, has none.
    if extension.starts_with('.') {
        name.len() > extension.len() && name.ends_with(extension)
    } else {
        name == extension
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_known_server_is_complete() {
        let ids: HashSet<_> = KNOWN.iter().map(|known| known.id).collect();
        assert_eq!(ids.len(), KNOWN.len());
        for known in KNOWN {
            assert!(!known.extensions.is_empty() && !known.install.is_empty(), "{}", known.id);
            assert!(known.commands.iter().all(|command| !command.is_empty()), "{}", known.id);
            assert!(known.npm.is_none_or(|npm| known.install.contains("npm") && !npm.packages.is_empty()));
            for extension in known.extensions {
                let name = if extension.starts_with('.') {
                    format!("a{extension}")
                } else {
                    (*extension).to_owned()
                };
                assert_ne!(language(&name), "plaintext", "{name}");
            }
        }
    }

    #[test]
    fn languages_follow_the_end_of_the_name() {
        for (name, expected) in [
            ("a.ts", "typescript"),
            ("a.d.mts", "typescript"),
            ("Dockerfile", "dockerfile"),
            ("x.Dockerfile", "plaintext"),
            (".py", "plaintext"),
            ("a.unknown", "plaintext"),
        ] {
            assert_eq!(language(name), expected, "{name}");
        }
    }
}
