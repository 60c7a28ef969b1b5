//! Repositories whose git settings name programs, files and directories.
//!
//! Git runs no program of a repository in any trust state, because trusting the configuration of a repository
//! does not mean to trust its git settings.

use std::fs;

use anyhow::Result;

use super::Kind;
use super::case::{Case, hostile};
use super::scene::Scene;

/// Settings in `.git/config` by name. Each would run `touch @C`.
const SETTINGS: &[(&str, &str)] = &[
    ("fsmonitor", "[core]\n\tfsmonitor = touch @C"),
    ("fsmonitor-v2", "[core]\n\tfsmonitorHookVersion = 2\n\tfsmonitor = \"touch @C; false\""),
    ("external-diff", "[diff]\n\texternal = touch @C"),
    ("external-diff-trusted-exit", "[diff]\n\texternal = \"sh -c 'touch @C'\"\n\ttrustExitCode = true"),
    ("pager", "[core]\n\tpager = touch @C"),
    (
        "pager-by-command",
        "[pager]\n\tdiff = touch @C\n\tstatus = touch @C\n\tlog = touch @C\n\tshow = touch @C\n\tbranch = touch @C",
    ),
    ("editor", "[core]\n\teditor = touch @C"),
    ("sequence-editor", "[sequence]\n\teditor = touch @C"),
    ("askpass", "[core]\n\taskPass = touch @C"),
    ("ssh-command", "[core]\n\tsshCommand = touch @C"),
    ("git-proxy", "[core]\n\tgitProxy = touch @C"),
    ("alternate-refs-command", "[core]\n\talternateRefsCommand = touch @C"),
    ("pack-objects-hook", "[uploadpack]\n\tpackObjectsHook = touch @C"),
    ("credential-helper", "[credential]\n\thelper = \"!touch @C\""),
    ("gpg-program", "[gpg]\n\tprogram = touch @C\n[log]\n\tshowSignature = true\n[commit]\n\tgpgSign = true"),
    (
        "gpg-ssh-program",
        "[gpg]\n\tformat = ssh\n[gpg \"ssh\"]\n\tprogram = touch @C\n\tdefaultKeyCommand = touch @C",
    ),
    ("gpg-x509-program", "[gpg]\n\tformat = x509\n[gpg \"x509\"]\n\tprogram = touch @C"),
    ("trailer-command", "[trailer \"x\"]\n\tcommand = touch @C\n\tcmd = touch @C"),
    ("interactive-filter", "[interactive]\n\tdiffFilter = touch @C"),
    ("merge-tool", "[merge]\n\ttool = x\n[mergetool \"x\"]\n\tcmd = touch @C"),
    ("diff-tool", "[diff]\n\ttool = x\n[difftool \"x\"]\n\tcmd = touch @C"),
    ("browser", "[help]\n\tbrowser = x\n[browser \"x\"]\n\tcmd = touch @C"),
    (
        "remote-helper",
        "[remote \"origin\"]\n\turl = ext::sh -c touch% @C\n[protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always",
    ),
    (
        "remote-uploadpack",
        "[remote \"origin\"]\n\turl = @O\n\tuploadpack = touch @C\n\treceivepack = touch @C",
    ),
    (
        "url-instead-of",
        "[url \"ext::sh -c touch% @C \"]\n\tinsteadOf = https://\n[remote \"origin\"]\n\turl = https://x.invalid/y\n[protocol \"ext\"]\n\tallow = always",
    ),
    (
        "maintenance-background",
        "[maintenance]\n\tauto = true\n[gc]\n\tauto = 1\n\tautoDetach = false\n[core]\n\tpager = touch @C",
    ),
    (
        "submodule-update",
        "[submodule \"sub\"]\n\turl = @O\n\tactive = true\n\tupdate = !touch @C\n[submodule]\n\trecurse = true",
    ),
    ("init-template", "[init]\n\ttemplateDir = @P/template"),
    (
        "aliases",
        "[alias]\n\tstatus = !touch @C\n\tdiff = !touch @C\n\trev-parse = !touch @C\n\tls-files = !touch @C\n\trev-list = !touch @C\n\tadd = !touch @C",
    ),
    (
        "odd-alias",
        "[alias \"diff\"]\n\tcommand = !touch @C\n[alias]\n\tdiff-files = !touch @C\n\tapply = !touch @C\n\twrite-tree = !touch @C",
    ),
    ("man-viewer", "[man]\n\tviewer = x\n[man \"x\"]\n\tcmd = touch @C"),
    ("sendmail", "[sendemail]\n\tsmtpServer = touch @C\n\ttoCmd = touch @C"),
    ("instaweb", "[instaweb]\n\thttpd = touch @C\n\tbrowser = touch @C"),
    ("hooks-path", "[core]\n\thooksPath = hooks"),
];

/// Git attributes with their settings. Each would run `touch @C`.
const DRIVERS: &[(&str, &str, &str)] = &[
    ("filter-clean", "* filter=x", "[filter \"x\"]\n\tclean = \"touch @C; cat\""),
    ("filter-smudge", "* filter=x", "[filter \"x\"]\n\tsmudge = \"touch @C; cat\""),
    ("filter-process", "* filter=x", "[filter \"x\"]\n\tprocess = \"touch @C\""),
    (
        "filter-required",
        "* filter=x",
        "[filter \"x\"]\n\trequired = true\n\tclean = \"touch @C; cat\"\n\tsmudge = \"touch @C; cat\"",
    ),
    ("filter-odd-name", "* filter=a.b=c", "[filter \"a.b=c\"]\n\tclean = \"touch @C; cat\""),
    (
        "filter-newline-name",
        "* filter=Ärger",
        "[filter \"Ärger\"]\n\tclean = \"touch @C; cat\"\n\tprocess = touch @C",
    ),
    (
        "filter-lfs-name",
        "* filter=lfs",
        "[filter \"lfs\"]\n\tclean = \"touch @C; cat\"\n\tprocess = touch @C\n\trequired = true",
    ),
    ("diff-command", "* diff=x", "[diff \"x\"]\n\tcommand = touch @C"),
    ("diff-textconv", "* diff=x", "[diff \"x\"]\n\ttextconv = \"touch @C; cat\"\n\tcachetextconv = true"),
    (
        "diff-binary-textconv",
        "* binary diff=x",
        "[diff \"x\"]\n\tbinary = true\n\ttextconv = \"touch @C; cat\"",
    ),
    ("diff-odd-name", "* diff=a.b", "[diff \"a.b\"]\n\tcommand = touch @C\n\ttextconv = touch @C"),
    ("merge-driver", "* merge=x", "[merge \"x\"]\n\tdriver = touch @C %O %A %B"),
];

/// Hooks that a git command may run.
const HOOKS: &[&str] = &[
    "post-index-change",
    "pre-commit",
    "post-checkout",
    "fsmonitor-watchman",
    "reference-transaction",
    "applypatch-msg",
    "pre-applypatch",
    "post-rewrite",
    "pre-auto-gc",
    "post-merge",
    "prepare-commit-msg",
    "sendemail-validate",
];

/// Settings that include another file.
const INCLUDES: &[(&str, &str)] = &[
    ("include", "[include]\n\tpath = ../evil.cfg"),
    ("include-absolute", "[include]\n\tpath = @P/evil.cfg"),
    ("include-if-gitdir", "[includeIf \"gitdir:@P/\"]\n\tpath = ../evil.cfg"),
    ("include-if-onbranch", "[includeIf \"onbranch:main\"]\n\tpath = ../evil.cfg"),
    ("include-if-gitdir-slashless", "[includeIf \"gitdir/i:**\"]\n\tpath = ../evil.cfg"),
    (
        "include-if-remote",
        "[remote \"o\"]\n\turl = x:y\n[includeIf \"hasconfig:remote.*.url:x:*\"]\n\tpath = ../evil.cfg",
    ),
];

/// The content of the included file.
const EVIL: &str = "[core]\n\tfsmonitor = touch @C\n\tsshCommand = touch @C\n[diff]\n\texternal = touch @C\n\
                    [filter \"x\"]\n\tclean = \"touch @C; cat\"\n[diff \"x\"]\n\ttextconv = touch @C\n";

pub(super) fn cases() -> Vec<Case> {
    let setting = |(name, text): &(&str, &str)| {
        let is_in_short = ["fsmonitor", "external-diff", "aliases"].contains(name);
        let case = repository(&format!("git-config/{name}")).file("README.md", "changed\n").git_config(*text);
        if is_in_short { case.short() } else { case }
    };
    let driver = |(name, attributes, text): &(&str, &str, &str)| {
        let case = repository(&format!("git-attributes/{name}"))
            .file(".gitattributes", format!("{attributes}\n"))
            .file("README.md", "changed\n")
            .git_config(*text);
        if name.starts_with("filter-clean") { case.short() } else { case }
    };
    let hook = |name: &&str| {
        repository(&format!("git-hook/{name}"))
            .file("README.md", "changed\n")
            .script(format!(".git/hooks/{name}"), "touch @C")
    };
    let include = |(name, text): &(&str, &str)| {
        repository(&format!("git-config/{name}"))
            .file(".gitattributes", "* filter=x diff=x\n")
            .file("README.md", "changed\n")
            .file("evil.cfg", EVIL)
            .git_config(*text)
    };
    SETTINGS
        .iter()
        .map(setting)
        .chain(DRIVERS.iter().map(driver))
        .chain(HOOKS.iter().map(hook))
        .chain(INCLUDES.iter().map(include))
        .chain(partial_clones())
        .chain(layouts())
        .chain(outside_paths())
        .map(Case::opens)
        .collect()
}

fn repository(name: &str) -> Case {
    hostile(Kind::Repositories, name).always()
}

/// Repositories without their objects, which git would fetch with a program that the repository names.
fn partial_clones() -> Vec<Case> {
    const PARTIAL: &str = "[extensions]\n\tpartialClone = origin\n[remote \"origin\"]\n\tpromisor = true\n\t\
                           partialclonefilter = blob:none\n\turl = ";
    let lost = "0123456789012345678901234567890123456789";
    let clone = |name: &str, url: &str, more: &str| {
        repository(&format!("partial-clone/{name}"))
            .git_config(format!("[core]\n\trepositoryFormatVersion = 1\n{PARTIAL}{url}\n{more}"))
            .file(".git/refs/heads/main", format!("{lost}\n"))
    };
    vec![
        clone("ssh-command", "ssh://x.invalid/y", "[core]\n\tsshCommand = touch @C;").short(),
        clone("ssh-variant", "x.invalid:y", "[core]\n\tsshCommand = touch @C;\n[ssh]\n\tvariant = simple"),
        clone("ext", "ext::touch @C", "[protocol \"ext\"]\n\tallow = always"),
        clone("uploadpack", "@O", "\tuploadpack = touch @C;"),
        clone("file-uploadpack", "file://@O", "\tuploadpack = touch @C;"),
        clone("http", "@L/x.git", "[http]\n\tfollowRedirects = true").no_contact(),
        clone("http-credential", "@L/x.git", "[credential]\n\thelper = !touch @C").no_contact(),
        clone("git-proxy", "git://x.invalid/y", "[core]\n\tgitProxy = touch @C"),
        clone("remote-helper", "x::y", "[remote \"z\"]\n\tvcs = x"),
        repository("partial-clone/lost-blob")
            .prepare(lose_a_blob)
            .git_config(format!(
                "[core]\n\trepositoryFormatVersion = 1\n\tsshCommand = touch @C;\n{PARTIAL}ssh://x.invalid/y"
            ))
            .file("README.md", "changed\n"),
    ]
}

/// Removes every object that is not a commit, as in a clone without blobs.
fn lose_a_blob(scene: &Scene) -> Result<()> {
    let blob = scene.project.run_git(&["rev-parse", "HEAD:README.md"])?;
    let (folder, name) = blob.trim().split_at(2);
    Ok(fs::remove_file(scene.path(&format!(".git/objects/{folder}/{name}")))?)
}

/// Repositories whose git directory or worktree is in another directory.
fn layouts() -> Vec<Case> {
    let evil = "[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n\tfsmonitor = touch @C\n[diff]\n\texternal = touch @C";
    vec![
        repository("layout/gitfile").prepare(|scene| move_git(scene, "gitdir: real\n")).file("real/config", evil),
        repository("layout/gitfile-absolute")
            .prepare(|scene| move_git(scene, &format!("gitdir: {}\n", scene.path("real").display())))
            .file("real/config", evil),
        repository("layout/git-link")
            .prepare(|scene| move_git(scene, ""))
            .prepare(|scene| Ok(fs::remove_file(scene.path(".git"))?))
            .link(".git", "real")
            .file("real/config", evil),
        repository("layout/commondir")
            .prepare(|scene| copy(&scene.path(".git"), &scene.path("@O/common")))
            .file("@O/common/config", evil)
            .file(".git/commondir", "@O/common\n"),
        repository("layout/worktree-config")
            .git_config("[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tworktreeConfig = true")
            .file(".git/config.worktree", "[core]\n\tfsmonitor = touch @C\n[diff]\n\texternal = touch @C\n"),
        repository("layout/nested-repository")
            .prepare(|scene| copy(&scene.path(".git"), &scene.path("sub/.git")))
            .file("sub/.git/config", evil)
            .file("sub/README.md", "changed\n"),
        repository("layout/submodule")
            .prepare(|scene| {
                copy(&scene.path(".git"), &scene.path("@O/module"))?;
                copy(&scene.path("@O/module"), &scene.path(".git/modules/sub"))
            })
            .file("sub/.git", "gitdir: ../.git/modules/sub\n")
            .file(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./x\n\tupdate = !touch @C\n")
            .file(".git/modules/sub/config", evil)
            .git_config("[submodule \"sub\"]\n\tactive = true\n[diff]\n\tsubmodule = diff\n[status]\n\tsubmoduleSummary = true"),
        repository("layout/submodule-in-index")
            .prepare(|scene| copy(&scene.path(".git"), &scene.path("sub/.git")))
            .git(&["update-index", "--add", "--cacheinfo", "160000,0123456789012345678901234567890123456789,sub"])
            .file("sub/.git/config", evil)
            .file(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./x\n"),
        repository("layout/bare-inside")
            .prepare(|scene| copy(&scene.path(".git"), &scene.path("bare")))
            .file("bare/config", "[core]\n\tbare = true\n\tworktree = ..\n\tfsmonitor = touch @C\n")
            .run_in("bare", &["models"])
            .run_in("bare", &["run", "hello"]),
        repository("layout/alternates-fifo")
            .fifo(".git/objects/info/alternates"),
        repository("layout/config-fifo").fifo(".git/more").git_config("[include]\n\tpath = more"),
        repository("layout/head-fifo").prepare(|scene| Ok(fs::remove_file(scene.path(".git/HEAD"))?)).fifo(".git/HEAD"),
        repository("layout/packed-refs-fifo").fifo(".git/packed-refs"),
        repository("layout/gitfile-fifo")
            .prepare(|scene| Ok(fs::rename(scene.path(".git"), scene.path("real"))?))
            .fifo(".git"),
    ]
}

/// Settings that make git access files outside the worktree.
fn outside_paths() -> Vec<Case> {
    vec![
        repository("place/core-worktree")
            .git_config("[core]\n\tworktree = @H")
            .get(&["/file/content?path=.netrc", "/vcs/diff?mode=git", "/vcs/diff/raw"])
            .calls([("bash", r#"{"command": "true"}"#)]),
        repository("place/attributes-file")
            .git_config(
                "[core]\n\tattributesFile = @P/evil.attr\n[filter \"x\"]\n\tclean = \"touch @C; cat\"",
            )
            .file("evil.attr", "* filter=x\n")
            .file("README.md", "changed\n"),
        repository("place/info-attributes")
            .git_config("[filter \"x\"]\n\tclean = \"touch @C; cat\"\n[diff \"x\"]\n\tcommand = touch @C")
            .file(".git/info/attributes", "* filter=x diff=x\n")
            .file("README.md", "changed\n"),
        repository("place/excludes-fifo").fifo("pipe").git_config("[core]\n\texcludesFile = @P/pipe"),
        repository("place/order-file")
            .git_config("[diff]\n\torderFile = @H/.netrc\n[commit]\n\ttemplate = @H/.netrc"),
        repository("place/git-of-the-repository")
            .script("bin/git", "touch @C; exec /usr/bin/git \"$@\"")
            .script("git", "touch @C; exec /usr/bin/git \"$@\"")
            .env("PATH", "@P/bin:.::bin:/usr/local/bin:/usr/bin:/bin"),
        repository("place/mailmap")
            .git_config("[mailmap]\n\tfile = @H/.netrc\n[blame]\n\tignoreRevsFile = @H/.netrc"),
        repository("place/trace-file")
            .git_config("[trace2]\n\teventTarget = @C\n\tnormalTarget = @C\n\tperfTarget = @C"),
        repository("place/alternates").file(".git/objects/info/alternates", "@O/objects\n../../../outside\n"),
        repository("place/index-outside")
            .prepare(|scene| {
                fs::remove_file(scene.path(".git/index"))?;
                Ok(std::os::unix::fs::symlink(scene.path("@H/.netrc"), scene.path(".git/index"))?)
            })
            .unchanged("@H/.netrc"),
        repository("place/objects-link")
            .prepare(|scene| {
                fs::create_dir_all(scene.path("@O/store"))?;
                fs::remove_dir_all(scene.path(".git/info"))?;
                Ok(std::os::unix::fs::symlink(scene.path("@O/store"), scene.path(".git/info"))?)
            })
            .absent("@O/store/exclude"),
    ]
}

/// Moves `.git` to `real` and replaces it by a file that names `real`.
fn move_git(scene: &Scene, text: &str) -> Result<()> {
    fs::rename(scene.path(".git"), scene.path("real"))?;
    Ok(fs::write(scene.path(".git"), text)?)
}

/// Copies a directory.
pub(super) fn copy(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path() == to {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
