//! The table of control files below the home directory.
//!
//! A row lists the program that reads the files. They are in the table for the same reason as those of the other
//! [table](super::table): a program runs code from them, or obeys settings that name code, keys or users, without a further
//! question. Their names mean something in the home directory alone: `bin` and `.config/sway` in a project are
//! ordinary. Names that mean the same everywhere are in the other table, and some in both, because programs of the user
//! keep exactly these ([`paths`]).
//!
//! A session in the home directory, or above it, needs permission by name to write them. So does one that writes outside
//! of its project.

/// Paths below the home directory, and why a write needs permission.
#[derive(Debug)]
pub(super) struct HomeRow {
    /// Why a write needs permission.
    pub(super) reason: &'static str,
    /// The program that reads the files.
    #[cfg_attr(not(test), expect(dead_code, reason = "the source of the row, for readers and tests"))]
    pub(super) program: &'static str,
    /// The paths, separated by [`SEPARATOR`]. The last component of each may contain one `*`.
    paths: &'static str,
}

const SEPARATOR: &str = ", ";

const SHELL: &str = "a shell runs it when it starts";
const SESSION: &str = "the desktop or the service manager runs it at login";
const PROGRAM: &str = "it contains programs that the user starts by name";
const MODULES: &str = "an interpreter loads modules from it without being asked";
const EDITOR: &str = "an editor runs code or commands from it";
const TOOL: &str = "a program runs commands that it names";
const INSTALLER: &str = "it decides where a package manager or build tool loads code from";
const GIT: &str = "version control runs programs that it names";
const AGENT: &str = "it holds permissions, hooks, tool servers or instructions of another coding agent";
const MAIL: &str = "a program handles mail or messages with the commands that it names";
const KEYS: &str = "it decides who may log in, or which keys and hosts are trusted";
const OWN: &str = "it configures this program";

const fn row(reason: &'static str, program: &'static str, paths: &'static str) -> HomeRow {
    HomeRow { reason, program, paths }
}

impl HomeRow {
    pub(super) fn paths(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.paths.split(SEPARATOR)
    }
}

/// Returns all paths of the table. The last component of each may contain one `*`.
pub fn paths() -> impl Iterator<Item = &'static str> {
    HOME.iter().flat_map(HomeRow::paths)
}

/// The files and directories that need permission by name, with what is inside.
pub(super) const HOME: &[HomeRow] = &[
    row(
        SHELL,
        "bash",
        ".bashrc*, .bash_profile, .bash_login, .bash_logout, .bash_aliases, .bash_functions, \
         .bash_completion, .bash_completion.d, .config/bash",
    ),
    row(
        SHELL,
        "bash-completion",
        ".local/share/bash-completion, .config/bash_completion, .config/bash-completion",
    ),
    row(
        SHELL,
        "frameworks for bash",
        ".oh-my-bash, .bash_it, .bash-it, .bash-git-prompt, .basher, .blerc, .config/blesh, \
         .local/share/blesh",
    ),
    row(SHELL, "sh", ".profile, .profile.d, .shrc, .shinit, .config/shell, .config/profile.d"),
    row(
        SHELL,
        "files that start-up files read",
        ".aliases, .functions, .exports, .path, .extra, .git-completion.bash, .git-prompt.sh, .fzf, \
         .fzf.*sh, .config/fzf, .config/user-dirs.dirs",
    ),
    row(
        SHELL,
        "zsh",
        ".zshrc*, .zshenv, .zprofile, .zlogin, .zlogout, .zsh, .zfunc, .zfunctions, .zcompdump*, .zshrc.d, \
         .config/zsh, .local/share/zsh, .cache/zsh",
    ),
    row(
        SHELL,
        "frameworks for zsh",
        ".oh-my-zsh, .config/oh-my-zsh, .zinit, .local/share/zinit, .zi, .zplug, .local/share/zplug, \
         .antigen, .antigenrc, .zsh_plugins.*, .cache/p10k-instant-prompt-*, .antidote, .config/antidote, .zgen, .zgenom, .zprezto, .zpreztorc, .zim, \
         .zimrc, .config/zim, .zplugrc, .p10k.zsh, .config/sheldon, .local/share/sheldon",
    ),
    row(SHELL, "fish", ".config/fish, .local/share/fish, .config/omf, .local/share/omf"),
    row(SHELL, "ksh", ".kshrc, .mkshrc"),
    row(SHELL, "csh", ".cshrc, .tcshrc, .login, .logout, .complete"),
    row(
        SHELL,
        "other shells",
        ".yashrc, .yash_profile, .esrc, .rcrc, .murex_*, .config/oils, .config/ion, .config/elvish, \
         .local/share/elvish, .config/xonsh, .local/share/xonsh, .xonshrc",
    ),
    row(SHELL, "Nushell", ".config/nushell, .local/share/nushell, Library/Application Support/nushell"),
    row(SHELL, "PowerShell", ".config/powershell, .local/share/powershell"),
    row(SHELL, "readline", ".inputrc"),
    row(
        SHELL,
        "prompts",
        ".config/starship.toml, .config/oh-my-posh, .liquidpromptrc, .config/liquidpromptrc, \
         .config/powerline, .config/carapace",
    ),
    row(SHELL, "direnv", ".config/direnv, .local/share/direnv, .direnvrc, .envrc"),
    row(SHELL, "rustup", ".cargo/env*"),
    row(
        SESSION,
        "PAM and systemd",
        ".pam_environment, .config/environment.d, .config/systemd, .local/share/systemd, .config/upstart",
    ),
    row(
        SESSION,
        "X11",
        ".xprofile, .xinitrc, .xsession, .xsessionrc, .xserverrc, .xbindkeysrc, .xbindkeysrc.scm, \
         .Xresources*, .Xdefaults*, .Xclients, .Xmodmap, .dmrc, .urxvt, .screenlayout, .config/autorandr",
    ),
    row(
        SESSION,
        "desktops",
        ".config/autostart, .config/autostart-scripts, .config/plasma-workspace, .config/mimeapps.list, \
         .config/*-mimeapps.list, .local/share/applications, .local/share/mime, .local/share/thumbnailers, \
         .local/share/desktop-directories, .config/menus, .config/xdg-terminals.list, \
         .local/share/xdg-terminals",
    ),
    row(SESSION, "D-Bus", ".local/share/dbus-1"),
    row(
        SESSION,
        "GNOME",
        ".config/dconf, .local/share/gnome-shell, .local/share/nautilus, .local/share/nautilus-python, \
         .gnome2, .config/gnome-session",
    ),
    row(
        SESSION,
        "other desktops",
        ".local/share/nemo, .local/share/nemo-python, .local/share/caja-python, .local/share/cinnamon, \
         .config/xfce4, .local/share/Thunar, .config/Thunar, .config/lxsession, .config/lxpanel, \
         .config/lxqt, .config/libfm, .config/pcmanfm, .config/enlightenment, .e",
    ),
    row(
        SESSION,
        "KDE",
        ".kde, .kde4, .config/kdedefaults, .config/kglobalshortcutsrc, .config/khotkeysrc, .config/kwinrc, \
         .config/plasma-org.kde.plasma.desktop-appletsrc, .config/plasmarc, .local/share/kservices5, \
         .local/share/kservices6, .local/share/kio, .local/share/konsole, .local/share/plasma, \
         .local/share/kwin",
    ),
    row(SESSION, "GTK", ".config/gtk-*, .gtkrc-2.0*"),
    row(
        SESSION,
        "sway and i3",
        ".config/sway, .config/swayidle, .config/swaync, .config/swaylock, .config/i3, .i3, \
         .config/i3status, .config/i3blocks, .i3status.conf, .config/kanshi",
    ),
    row(
        SESSION,
        "Wayland compositors",
        ".config/hypr, .config/river, .config/niri, .config/labwc, .config/wayfire*, .config/weston.ini, \
         .config/miracle-wm, .config/cosmic",
    ),
    row(
        SESSION,
        "window managers",
        ".config/awesome, .config/bspwm, .config/sxhkd, .config/openbox, .config/qtile, \
         .config/herbstluftwm, .config/leftwm, .config/spectrwm, .spectrwm.conf, .xmonad, .config/xmonad, \
         .fluxbox, .icewm, .config/icewm, .fvwm*, .twmrc, .mwmrc, .dwm, .stumpwm*, .config/stumpwm, \
         .ratpoisonrc",
    ),
    row(
        SESSION,
        "bars, launchers and notifications",
        ".config/polybar, .config/waybar, .config/eww, .config/rofi, .config/wofi, .config/fuzzel, \
         .config/dunst, .config/mako, .config/conky, .conkyrc, .config/tint2, .config/ulauncher, \
         .local/share/ulauncher, .config/albert*, .config/espanso, .config/autokey, .config/touchegg, \
         .config/fusuma, .config/libinput-gestures.conf, .config/redshift, .config/redshift.conf, \
         .config/gammastep",
    ),
    row(
        SESSION,
        "sound servers",
        ".asoundrc, .config/pulse, .config/pipewire, .config/wireplumber, .local/share/wireplumber",
    ),
    row(
        SESSION,
        "macOS",
        "Library/LaunchAgents, Library/Application Scripts, Library/Services, Library/Scripts, \
         Library/Preferences, Library/Input Methods, Library/PreferencePanes, Library/QuickLook, \
         .hammerspoon, .config/karabiner, .config/yabai, .yabairc, .config/skhd, .skhdrc, \
         .config/aerospace, .aerospace.toml, .config/sketchybar, .phoenix.js, .finicky.js",
    ),
    row(
        SESSION,
        "remote desktops",
        ".vnc, .config/tigervnc, startwm.sh, .x2goclient, .nxclient, .chrome-remote-desktop-session",
    ),
    row(
        PROGRAM,
        "the search path of shells",
        "bin, .bin, sbin, .local/bin, .local/sbin, .local/libexec, Applications",
    ),
    row(PROGRAM, "Cargo and rustup", ".cargo/bin, .rustup"),
    row(PROGRAM, "Go", "go/bin, .gvm, .goenv"),
    row(
        PROGRAM,
        "package managers of JavaScript",
        ".bun/bin, .bun/install/global, .deno/bin, .npm-global, .npm-packages, .yarn/bin, \
         .config/yarn/global, .local/share/pnpm",
    ),
    row(PROGRAM, "version managers of Node", ".nvm, .fnm, .local/share/fnm, .volta, .n, .nodenv, .nodebrew"),
    row(
        PROGRAM,
        "version managers",
        ".pyenv, .rbenv, .rvm, .asdf, .asdfrc, .tool-versions, .local/share/mise, .config/mise, \
         .mise.toml, mise.toml, .local/share/rtx, .proto, .version-fox, .vfox, .sdkman, .jenv, .jabba, \
         .phpenv, .plenv, .perlbrew, .tfenv, .tenv, .swiftly, .local/share/swiftly, .swiftenv, .elan/bin, \
         .juliaup/bin, .julia/juliaup, .ghcup, .aqua, .local/share/aquaproj-aqua",
    ),
    row(
        PROGRAM,
        "installers of programs",
        ".cabal/bin, .opam, .dotnet/tools, .composer/vendor, .config/composer, .pub-cache/bin, .krew, \
         .local/share/uv/tools, .local/share/pipx, .local/pipx, .rye/shims, .rye/self, .pixi/bin, \
         .docker/cli-plugins, .moon/bin, .jbang/bin, .local/opt, .local/share/gh, .local/share/flatpak, .foundry/bin, .local/share/coursier/bin, .nimble/bin, .mix/escripts, .luarocks/bin",
    ),
    row(
        PROGRAM,
        "Nix and Homebrew",
        ".nix-profile, .nix-defexpr, .config/nixpkgs, .config/nix, .config/home-manager, .local/state/nix, \
         .linuxbrew, .Brewfile",
    ),
    row(PROGRAM, "conda", "miniconda*, anaconda*, miniforge*, mambaforge*, micromamba, .conda"),
    row(PROGRAM, "OpenCode", ".opencode/bin"),
    row(PROGRAM, "code-server", ".local/share/code-server"),
    row(
        MODULES,
        "Python",
        ".local/lib, sitecustomize.py, usercustomize.py, Library/Python, .pythonrc*, .pythonstartup*, \
         .config/python, .pdbrc*, .local/share/virtualenv, .virtualenvs",
    ),
    row(
        MODULES,
        "consoles of Python",
        ".ipython, .config/ipython, .config/ptpython, .ptpython, .config/bpython, .config/pudb, .sage",
    ),
    row(MODULES, "Jupyter", ".jupyter, .local/share/jupyter, .local/etc/jupyter"),
    row(
        MODULES,
        "tools of Python",
        ".pylintrc, .config/pylintrc, .mypy.ini, .config/mypy, .config/matplotlib/matplotlibrc, \
         .matplotlib/matplotlibrc",
    ),
    row(
        MODULES,
        "Node",
        "node_modules, .node_modules, .node_libraries, .eslintrc*, .prettierrc*, .stylelintrc*, .mocharc*, \
         .babelrc*",
    ),
    row(
        MODULES,
        "R",
        ".Rprofile, .Renviron, .R, R/*-library, .config/R, .config/rstudio, .local/share/rstudio",
    ),
    row(
        MODULES,
        "Ruby",
        ".irbrc, .config/irb, .pryrc, .config/pry, .gem, .local/share/gem, .byebugrc, .rdbgrc, .config/rdbg",
    ),
    row(MODULES, "Perl", ".perldb, perl5, .perltidyrc, .perlcriticrc"),
    row(MODULES, "Haskell", ".ghci, .ghc, .config/ghc"),
    row(MODULES, "Julia", ".julia/config, .julia/environments"),
    row(
        MODULES,
        "Octave and MATLAB",
        ".octaverc, .octave_packages, .config/octave, .local/share/octave, Documents/MATLAB",
    ),
    row(MODULES, "Elixir and Erlang", ".iex.exs, .config/iex, .erlang, .config/erlang"),
    row(MODULES, "Lua", ".luarocks, .config/luarocks"),
    row(
        MODULES,
        "Lisp and Scheme",
        ".guile, .sbclrc, .eclrc, .clisprc*, .ccl-init.lisp, .abclrc, .csirc, .racketrc, \
         .local/share/racket, .config/racket, .roswell, quicklisp, .config/common-lisp",
    ),
    row(
        MODULES,
        "other languages",
        ".ocamlinit, .latexmkrc, .config/latexmk, .config/utop, .utoprc, .swiplrc, .config/swi-prolog, .tclshrc, .wishrc, .expect.rc, \
         .groovy/lib, .groovy/groovysh.profile, .ammonite, .config/psysh, .coqrc, .config/coq",
    ),
    row(
        MODULES,
        "mathematics and statistics",
        ".maxima, .maximarc, .gprc, .gap, .gaprc, .singularrc, .Mathematica, .rootrc, .rootlogon.C, \
         .gnuplot, .config/gnuplot, profile.do",
    ),
    row(
        EDITOR,
        "Vim",
        ".exrc, .nexrc, .vimrc*, .gvimrc, _vimrc, .ideavimrc, .vim, .vim_runtime, .SpaceVim*, .config/vim, \
         .local/share/vim",
    ),
    row(
        EDITOR,
        "Neovim",
        ".config/nvim*, .local/share/nvim*, .config/lvim, .local/share/lunarvim, .local/share/lvim",
    ),
    row(
        EDITOR,
        "Emacs",
        ".emacs*, .config/emacs*, .local/share/emacs, .spacemacs*, .doom.d, .config/doom, .config/chemacs, \
         .dir-locals*.el, .abbrev_defs, .gnus*, .newsrc*, .ercrc.el, .mew.el, .wl",
    ),
    row(
        EDITOR,
        "VS Code and its relatives",
        ".config/Code, .config/Code - Insiders, .config/Code - OSS, .config/VSCodium, .config/Cursor, \
         .config/Windsurf, .config/Trae, .config/Kiro, .config/Void, .config/Antigravity, \
         .config/code-server, .vscode, .vscode-oss, .vscode-insiders, .vscode-server, .vscode-remote, \
         .cursor-server, .windsurf-server, .config/code-flags.conf, Library/Application Support/Code, \
         Library/Application Support/Cursor",
    ),
    row(
        EDITOR,
        "JetBrains",
        ".config/JetBrains, .local/share/JetBrains, .idea, .IdeaIC*, .IntelliJIdea*, .PyCharm*, \
         Library/Application Support/JetBrains",
    ),
    row(
        EDITOR,
        "other editors",
        ".nanorc, .config/nano, .config/micro, .config/kak, .kakrc, .config/kak-lsp, .config/helix, \
         .config/zed, Library/Application Support/Zed, .config/sublime-text*, \
         Library/Application Support/Sublime Text, .config/lapce*, .local/share/lapce*, .config/lite-xl, \
         .textadept, .config/geany, .local/share/kate, .local/share/gedit, .local/share/gnome-builder, \
         .joerc, .jedrc, .atom, .pulsar, .netbeans, .config/spyder*, .spyder*",
    ),
    row(
        TOOL,
        "tmux, screen and zellij",
        ".tmux*, .config/tmux, .config/tmuxinator, .tmuxinator, .config/tmuxp, .tmuxp, .config/zellij, \
         .screenrc, .byobu, .config/byobu",
    ),
    row(
        TOOL,
        "terminals",
        ".config/alacritty, .alacritty.*, .config/kitty, .config/wezterm, .wezterm.lua, .config/ghostty, \
         .config/foot, .config/terminator, .config/tilix, .config/rio, .hyper.js, .config/Hyper, \
         .config/contour, .config/iterm2, Library/Application Support/iTerm2, .warp, \
         .local/share/warp-terminal",
    ),
    row(
        TOOL,
        "file managers",
        ".config/ranger, .local/share/ranger, .config/lf, .config/yazi, .config/nnn, .config/vifm, .vifm, \
         .config/mc, .local/share/mc, .mc, .config/joshuto, .config/xplr, .config/broot, .config/doublecmd",
    ),
    row(
        TOOL,
        "viewers",
        ".lesskey, .config/lesskey, .lesspipe, .lessfilter, .mailcap, .mime.types, .config/bat, \
         .ripgreprc, .config/ripgrep, .config/zathura, .config/sxiv, .config/nsxiv, .config/imv, \
         .config/feh, .config/qutebrowser, .local/share/qutebrowser, .config/luakit, .config/vimb, \
         .config/nyxt, .w3m, .lynxrc, .elinks, .config/elinks",
    ),
    row(
        TOOL,
        "players",
        ".mpv, .config/mpv, .mplayer, .config/mpd, .mpdconf, .config/ncmpcpp, .ncmpcpp, .config/cmus, \
         .config/vlc, .config/youtube-dl, .config/yt-dlp*, .yt-dlp",
    ),
    row(
        TOOL,
        "debuggers",
        ".gdbinit*, .gdbearlyinit, .config/gdb, .local/share/gdb, .lldb, .lldbinit*, .cgdb, .radare2rc, \
         .config/radare2, .local/share/radare2, .rizinrc, .config/rizin, .local/share/rizin, .pwndbg, \
         .gef.rc, .valgrindrc, .perfconfig",
    ),
    row(
        TOOL,
        "clients of databases",
        ".psqlrc, .config/pgcli, .sqliterc, .config/sqlite3, .duckdbrc, .config/litecli, .config/mycli, \
         .myclirc, .usqlrc, .mongoshrc.js, .mongodb, login.sql",
    ),
    row(
        TOOL,
        "transfer programs",
        ".curlrc, .config/curlrc, .wgetrc, .wget2rc, .config/wget, .lftprc, .config/lftp, .lftp, .aria2, \
         .config/aria2, .config/syncthing, .local/state/syncthing, .unison, .config/borgmatic, \
         .config/httpie",
    ),
    row(
        TOOL,
        "monitors and planners",
        ".config/htop, .toprc, .config/procps, .config/btop, .taskrc, .config/task, .task, .timewarrior, \
         .config/timewarrior, .remind, .reminders, .config/remind",
    ),
    row(
        TOOL,
        "keys and containers",
        ".ssh, .gnupg, .config/containers, .config/k9s, .k9s, .local/share/k9s, \
         Library/Application Support/k9s, .local/share/helm, .config/helmfile, .config/lazydocker",
    ),
    row(
        TOOL,
        "tools of infrastructure",
        ".ansible*, .config/ansible, .terraformrc, .terraform.d, .tofurc, .config/opentofu, .packer.d, \
         .config/packer, .packerconfig, .pulumi/bin, .chef, .puppetlabs, .config/puppet, .fabricrc, .granted, \
         .saml2aws, .aws-vault",
    ),
    row(
        TOOL,
        "managers of dotfiles",
        ".config/chezmoi, .local/share/chezmoi, .config/yadm, .local/share/yadm, .yadm, .rcm, .homesick, \
         .mackup.cfg, .config/dotdrop",
    ),
    row(
        TOOL,
        "graphics and office programs",
        ".gimp*, .config/GIMP, .config/inkscape, .config/blender, .config/calibre/plugins, \
         .local/share/krita, .local/share/FreeCAD, .config/FreeCAD, .FreeCAD",
    ),
    row(TOOL, "Newsboat", ".newsboat, .config/newsboat, .newsbeuter"),
    row(
        MAIL,
        "mail transfer agents",
        ".forward, .forward+*, .qmail*, .procmailrc, .maildroprc, .mailfilter, .sieve, .dovecot.sieve, \
         .vacation*",
    ),
    row(
        MAIL,
        "mail clients",
        ".muttrc, .mutt, .config/mutt, .neomuttrc, .mailrc, .config/aerc, .config/alot, .config/himalaya, \
         .offlineimaprc, .config/offlineimap, .getmail, .config/getmail, .notmuch-config, .config/notmuch, \
         .config/meli, .pinerc, .slrnrc",
    ),
    row(
        MAIL,
        "chat clients",
        ".irssi, .weechat, .config/weechat, .local/share/weechat, .config/hexchat, .purple, \
         .config/profanity",
    ),
    row(INSTALLER, "npm, Yarn and pnpm", ".npmrc, .yarnrc*, .config/yarn, .config/pnpm, .pnpmfile.*"),
    row(INSTALLER, "Bun", ".bunfig.toml, .config/.bunfig.toml"),
    row(INSTALLER, "Cargo", ".cargo/config*"),
    row(
        INSTALLER,
        "pip and others of Python",
        ".config/pip, .pip, Library/Application Support/pip, .pypirc, .pydistutils.cfg, .config/uv, \
         .config/pypoetry, .config/pdm, .config/hatch, .condarc, .mambarc",
    ),
    row(INSTALLER, "RubyGems and Bundler", ".gemrc, .bundle, .rspec"),
    row(INSTALLER, "Maven", ".m2/settings*, .m2/extensions.xml, .mavenrc"),
    row(INSTALLER, "Gradle", ".gradle/init.*, .gradle/gradle.properties"),
    row(
        INSTALLER,
        "Ant, sbt and Mill",
        ".antrc, .ant, .sbt, .sbtrc, .sbtconfig, .sbtopts, .mill, .ivy2/.credentials",
    ),
    row(INSTALLER, "Clojure", ".lein, .clojure, .config/clojure, .boot"),
    row(INSTALLER, "Bazel and Buck", ".bazelrc, .bazeliskrc, .buckconfig*"),
    row(INSTALLER, "Go", ".config/go/env"),
    row(INSTALLER, "NuGet", ".nuget/NuGet, .config/NuGet, .config/msbuild"),
    row(INSTALLER, "Cabal and Stack", ".cabal/config, .config/cabal, .stack/config.yaml"),
    row(INSTALLER, "Hex", ".mix, .hex"),
    row(
        INSTALLER,
        "other compilers",
        ".ccache/ccache.conf, .config/ccache, .config/clangd, .conan/profiles, .conan2/profiles, .conan2/extensions, .nimble/nimble.ini, \
         .config/nim, .config/dune",
    ),
    row(
        GIT,
        "Git",
        ".gitconfig*, .config/git, .git, .gitattributes, .git-templates, .git_template*, .githooks, .gitk",
    ),
    row(GIT, "Mercurial", ".hgrc, .hg, .config/hg"),
    row(
        GIT,
        "Subversion and others",
        ".subversion, .jjconfig.toml, .config/jj, .config/breezy, .bazaar, .arcrc, .p4enviro, .p4config, \
         .quiltrc, .reviewboardrc, .cvsrc",
    ),
    row(
        GIT,
        "tools around Git",
        ".pre-commit-config.yaml, .config/lazygit, Library/Application Support/lazygit, .tigrc, \
         .config/tig, .config/gitui, .config/gitweb*",
    ),
    row(
        AGENT,
        "Claude Code",
        ".claude.json, .claude/settings*, .claude/hooks, .claude/commands, .claude/agents, \
         .claude/plugins, .claude/output-styles, .claude/CLAUDE.md, .claude/statusline*",
    ),
    row(AGENT, "Claude", ".config/Claude, Library/Application Support/Claude"),
    row(AGENT, "agents with skills", ".agents, .mcp.json"),
    row(AGENT, "Codex", ".codex/config*, .codex/hooks*, .codex/prompts, .codex/rules, .codex/AGENTS*.md"),
    row(
        AGENT,
        "other agents",
        ".cursor, .gemini, .qwen, .windsurf, .codeium/windsurf, .aider*, .continue, .config/goose, \
         .config/amp, .config/crush, .kiro, .trae, .junie, .roo, .factory, .augment, .copilot, .amazonq, \
         .local/share/amazon-q, .config/aichat, .openinterpreter, .config/open-interpreter, \
         .lmstudio/mcp.json",
    ),
    row(OWN, "codewright and opencode", ".codewright, opencode.json*, codewright.json*, tui.json*"),
    row(
        KEYS,
        "login by key or host",
        ".rhosts, .shosts, .k5login, .k5users, .k5identity, .google_authenticator, .yubico, \
         .config/Yubico, .Xauthority, .ICEauthority",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_has_a_source_and_paths_below_the_home() {
        let mut seen = HashSet::new();
        for row in HOME {
            assert!(!row.program.is_empty() && !row.reason.is_empty(), "{row:?}");
            for path in row.paths() {
                let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
                let is_relative = !path.starts_with('/') && path.split('/').all(|name| !name.is_empty());
                assert!(is_relative && path.trim() == path, "{path}");
                assert!(!above.contains('*') && name.matches('*').count() < 2, "{path}");
                assert!(seen.insert(path), "`{path}` is there twice");
            }
        }
    }
}
