//! The known formatters, in the order in which clients list them and files pass through them.

/// A known formatter.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) extensions: &'static [&'static str],
    /// The command without the program's directory. `$FILE` stands for the file.
    pub(crate) command: &'static [&'static str],
    /// The condition under which a project uses it.
    pub(crate) used: Used,
}

/// The sign that a project uses a formatter.
#[derive(Debug)]
pub(crate) enum Used {
    /// The program is installed.
    Installed,
    /// The program is installed and its output for `args` begins with a line that contains all of `words`.
    Answers { args: &'static [&'static str], words: &'static [&'static str] },
    /// One of these files exists in the directory or above it.
    File(&'static [&'static str]),
    /// `package.json` names this package, which the project has installed.
    Package(&'static str),
    /// Like `Package`, if the experiment is enabled.
    Oxfmt,
    /// `composer.json` names this package, which the project has installed in `vendor/bin`.
    Composer(&'static str),
    /// The project is configured for or depends on ruff.
    Ruff,
    /// The program is installed and can format, and ruff is not used.
    Uv,
}

/// Formatters that run code of the project if one of these exists in the directory or above it: settings in a programming
/// language, or those that name plugins.
const RUNNING_CODE: &[(&str, &[&str])] = &[
    (
        "prettier",
        &[
            "node_modules",
            ".pnp.cjs",
            ".prettierrc",
            ".prettierrc.json",
            ".prettierrc.json5",
            ".prettierrc.yaml",
            ".prettierrc.yml",
            ".prettierrc.toml",
            ".prettierrc.js",
            ".prettierrc.mjs",
            ".prettierrc.cjs",
            ".prettierrc.ts",
            ".prettierrc.mts",
            ".prettierrc.cts",
            "prettier.config.js",
            "prettier.config.mjs",
            "prettier.config.cjs",
            "prettier.config.ts",
            "prettier.config.mts",
            "prettier.config.cts",
        ],
    ),
    ("oxfmt", &["node_modules"]),
    (
        "eslint",
        &["node_modules", "eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts"],
    ),
    ("stylelint", &["node_modules", "stylelint.config.js", "stylelint.config.mjs", ".stylelintrc.js"]),
    ("mix", &["mix.exs", ".formatter.exs"]),
    ("rubocop", &[".rubocop.yml", ".rubocop", "Gemfile"]),
    ("standardrb", &[".standard.yml", ".rubocop.yml", "Gemfile"]),
    ("pint", &["vendor"]),
    ("php-cs-fixer", &[".php-cs-fixer.php", ".php-cs-fixer.dist.php"]),
];

/// The files and directories with which a program runs code of a project.
pub(crate) fn code_of(program: &str) -> &'static [&'static str] {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.split('@').next().unwrap_or(name);
    RUNNING_CODE.iter().find(|(known, _)| *known == name).map_or(&[], |(_, files)| files)
}

const SCRIPTS: &[&str] = &[".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"];
const DOCUMENTS: &[&str] = &[
    ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".html", ".htm", ".css", ".scss", ".sass",
    ".less", ".vue", ".svelte", ".json", ".jsonc", ".yaml", ".yml", ".toml", ".xml", ".md", ".mdx",
    ".graphql", ".gql",
];
const RUBY: &[&str] = &[".rb", ".rake", ".gemspec", ".ru"];
const PYTHON: &[&str] = &[".py", ".pyi"];
const C: &[&str] =
    &[".c", ".cc", ".cpp", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".h++", ".ino", ".C", ".H"];
const ELIXIR: &[&str] = &[".ex", ".exs", ".eex", ".heex", ".leex", ".neex", ".sface"];

const fn installed(
    name: &'static str,
    extensions: &'static [&'static str],
    command: &'static [&'static str],
) -> Known {
    Known { name, extensions, command, used: Used::Installed }
}

pub(crate) const KNOWN: &[Known] = &[
    installed("zig", &[".zig", ".zon"], &["zig", "fmt", "$FILE"]),
    Known { name: "uv", extensions: PYTHON, command: &["uv", "format", "--", "$FILE"], used: Used::Uv },
    installed("terraform", &[".tf", ".tfvars"], &["terraform", "fmt", "$FILE"]),
    installed("standardrb", RUBY, &["standardrb", "--fix", "$FILE"]),
    installed("shfmt", &[".sh", ".bash"], &["shfmt", "-w", "$FILE"]),
    installed("rustfmt", &[".rs"], &["rustfmt", "$FILE"]),
    Known { name: "ruff", extensions: PYTHON, command: &["ruff", "format", "$FILE"], used: Used::Ruff },
    installed("rubocop", RUBY, &["rubocop", "--autocorrect", "$FILE"]),
    Known {
        name: "air",
        extensions: &[".R"],
        command: &["air", "format", "$FILE"],
        // Another program has the same name.
        used: Used::Answers { args: &["--help"], words: &["R language", "formatter"] },
    },
    Known {
        name: "prettier",
        extensions: DOCUMENTS,
        command: &["prettier", "--write", "$FILE"],
        used: Used::Package("prettier"),
    },
    Known {
        name: "pint",
        extensions: &[".php"],
        command: &["pint", "$FILE"],
        used: Used::Composer("laravel/pint"),
    },
    Known { name: "oxfmt", extensions: SCRIPTS, command: &["oxfmt", "$FILE"], used: Used::Oxfmt },
    installed("ormolu", &[".hs"], &["ormolu", "-i", "$FILE"]),
    Known {
        name: "ocamlformat",
        extensions: &[".ml", ".mli"],
        command: &["ocamlformat", "-i", "$FILE"],
        used: Used::File(&[".ocamlformat"]),
    },
    installed("nixfmt", &[".nix"], &["nixfmt", "$FILE"]),
    installed("mix", ELIXIR, &["mix", "format", "$FILE"]),
    installed("latexindent", &[".tex"], &["latexindent", "-w", "-s", "$FILE"]),
    installed("ktlint", &[".kt", ".kts"], &["ktlint", "-F", "$FILE"]),
    installed("htmlbeautifier", &[".erb", ".html.erb"], &["htmlbeautifier", "$FILE"]),
    installed("gofmt", &[".go"], &["gofmt", "-w", "$FILE"]),
    installed("gleam", &[".gleam"], &["gleam", "format", "$FILE"]),
    installed("dfmt", &[".d"], &["dfmt", "-i", "$FILE"]),
    installed("dart", &[".dart"], &["dart", "format", "$FILE"]),
    installed("cljfmt", &[".clj", ".cljs", ".cljc", ".edn"], &["cljfmt", "fix", "--quiet", "$FILE"]),
    Known {
        name: "clang-format",
        extensions: C,
        command: &["clang-format", "-i", "$FILE"],
        used: Used::File(&[".clang-format"]),
    },
    Known {
        name: "biome",
        extensions: DOCUMENTS,
        command: &["biome", "format", "--write", "$FILE"],
        used: Used::File(&["biome.json", "biome.jsonc"]),
    },
];
