//! Attempts to leave the sandbox that once succeeded or that need a state outside.

use std::fs::{create_dir_all, read_to_string, write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use codewright_workspace::{Author, Command, Confined, End, Guarded, Limits, Network, Sandbox, run};
use tokio_util::sync::CancellationToken;

use crate::sandboxed::{House, complete, confinement, exit, mechanisms};

/// A sandbox that guards names in directories below the worktree.
fn nested(house: &House) -> Sandbox {
    let row = |directory: &str, patterns: &[&str]| Guarded {
        directory: house.path(directory),
        patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
        except: Vec::new(),
    };
    let guarded = vec![
        row("work", &[".mcp.json", ".envrc"]),
        row("work/.vscode", &["tasks.json"]),
        row("work/.config", &["git"]),
    ];
    Sandbox { guarded, ..house.sandbox() }
}

#[tokio::test]
async fn a_link_in_place_of_a_directory_leads_the_guard_nowhere() {
    for mechanism in mechanisms() {
        let house = House::new();
        create_dir_all(house.path("home/.config/git")).unwrap();
        write(house.path("home/.config/git/config"), "the user's").unwrap();
        let line = "ln -s $ROOT/home/.config .config; mkdir real; echo evil > real/tasks.json; ln -s real .vscode; sleep 0.5";
        let ended = house.run_in(nested(&house), &mechanism, line).await;
        assert_eq!(read_to_string(house.path("home/.config/git/config")).unwrap(), "the user's");
        assert!(!house.path("work/.vscode/tasks.json").exists() && !house.path("work/.config").exists());
        let refused = [".config", "real/tasks.json", ".vscode"].map(|name| house.path("work").join(name));
        assert!(ended.refused_names.iter().all(|path| refused.contains(path)), "{:?}", ended.refused_names);
        assert!(ended.refused_names.len() >= 2, "{mechanism:?}: {:?}", ended.refused_names);
    }
}

#[tokio::test]
async fn the_directory_of_a_protected_file_cannot_be_exchanged() {
    let Some(mechanism) = complete() else { return };
    let house = House::new();
    create_dir_all(house.path("work/.vscode")).unwrap();
    write(house.path("work/.vscode/tasks.json"), "the user's").unwrap();
    let line = "mv .vscode old; mkdir -p .vscode; echo evil > .vscode/tasks.json; echo done";
    let ended = house.run_in(nested(&house), &mechanism, line).await;
    assert_eq!(ended.end, End::Exited(0));
    let text = read_to_string(house.path("work/.vscode/tasks.json"));
    assert_eq!(text.unwrap(), "the user's", "{}", ended.output.text());
    let ended = house.run_in(nested(&house), &mechanism, "echo x > .vscode/settings.json").await;
    assert_eq!(ended.end, End::Exited(0), "other files can be written: {}", ended.output.text());
}

#[tokio::test]
async fn a_control_file_never_appears_whatever_else_was_created() {
    for mechanism in mechanisms() {
        for line in [
            "i=0; while [ $i -le 1000 ]; do : > blocked-$i-.mcp.json; i=$((i+1)); done; echo evil > .mcp.json",
            "echo evil > .mcp.json; chmod 0 .; exit 0",
            "mkdir -p .vscode; echo evil > .vscode/tasks.json; chmod 0 .vscode; exit 0",
            "while :; do echo evil > .mcp.json; done & sleep 0.7",
            "mkdir .mcp.json; mkdir .mcp.json/x; sleep 0.3; mkdir .mcp.json; mv .mcp.json .envrc; mkdir .mcp.json",
        ] {
            let house = House::new();
            drop(
                run(
                    command(&house, nested(&house), &mechanism, line),
                    limits(&house),
                    &CancellationToken::new(),
                    &mut |_| {},
                )
                .await,
            );
            std::fs::set_permissions(house.path("work"), PermissionsExt::from_mode(0o755)).unwrap();
            for name in [".mcp.json", ".envrc", ".vscode/tasks.json"] {
                assert!(!house.path("work").join(name).exists(), "{mechanism:?}: {line}");
            }
        }
    }
}

#[tokio::test]
async fn other_forms_of_a_guarded_name_are_refused() {
    let Some(mechanism) = complete() else { return };
    let house = House::new();
    let forms = [".MCP.json", ".m\u{200c}cp.json", ".mcp.json.", ".mcp.json ", ".ENVRC", ".env\u{feff}rc"];
    let line: Vec<String> = forms.iter().map(|form| format!("echo evil > '{form}'")).collect();
    let ended = house.run_in(nested(&house), &mechanism, &line.join(";")).await;
    assert_eq!(ended.refused_names.len(), forms.len(), "{:?}", ended.refused_names);
    assert!(forms.iter().all(|form| !house.path("work").join(form).exists()));
}

#[tokio::test]
async fn an_aborted_command_leaves_no_control_file() {
    for mechanism in mechanisms() {
        let house = House::new();
        let line = "trap 'sleep 0.2; echo evil > .mcp.json; sleep 9' TERM; echo ready; sleep 60 & wait";
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let mut watch = move |_: &codewright_workspace::Output| stop.cancel();
        let command = command(&house, nested(&house), &mechanism, line);
        let ended = run(command, limits(&house), &cancel, &mut watch).await.unwrap();
        assert_eq!(ended.end, End::Cancelled, "{mechanism:?}");
        ended.rest.expect("it does not end at once").end().await;
        assert!(!house.path("work/.mcp.json").exists(), "{mechanism:?}");
    }
}

#[tokio::test]
async fn a_link_to_nothing_stays() {
    let Some(mechanism) = complete() else { return };
    let house = House::new();
    symlink("later", house.path("work/.vscode")).unwrap();
    let ended = house.run_in(nested(&house), &mechanism, "sleep 0.3").await;
    assert_eq!(ended.refused_names, [""; 0].map(std::path::PathBuf::from));
    let line = "mkdir later; echo evil > later/tasks.json; sleep 0.3";
    let ended = house.run_in(nested(&house), &mechanism, line).await;
    assert!(!house.path("work/.vscode/tasks.json").exists(), "{:?}", ended.refused_names);
    assert!(house.path("work/.vscode").is_symlink());
}

#[tokio::test]
async fn sockets_of_services_are_out_of_reach() {
    for mechanism in mechanisms() {
        let house = House::new();
        let places = ["home/agent.sock", "work/dev server.sock", "other/x"];
        let listeners: Vec<UnixListener> =
            places.iter().map(|place| UnixListener::bind(house.path(place)).unwrap()).collect();
        for listener in &listeners {
            listener.set_nonblocking(true).unwrap();
        }
        let script = "import os, socket, sys\n\
             for path in sys.argv[1:]:\n\
             \x20 for kind in (1, 2, 5):\n\
             \x20   try:\n\
             \x20     s = socket.socket(1, kind); s.connect(os.environ['ROOT'] + '/' + path); print('reached', path)\n\
             \x20   except OSError as e: print('failed', e.errno)\n\
             try:\n\
             \x20 own = socket.socket(1, 1); own.bind('own'); own.listen(); s = socket.socket(1, 1); s.connect('own'); print('own works')\n\
             except OSError as e: print('own failed', e.errno)\n";
        write(house.path("work/connect.py"), script).unwrap();
        let line = "python3 connect.py home/agent.sock 'work/dev server.sock' other/x";
        let ended = house.run(&mechanism, line).await;
        let text = ended.output.text();
        assert!(!text.contains("reached"), "{mechanism:?}: {text}");
        assert!(listeners.iter().all(|listener| listener.accept().is_err()), "{mechanism:?}: {text}");
        assert_eq!(text.contains("own works"), mechanism.is_complete(), "{mechanism:?}: {text}");
        let open = Sandbox { network: Network::Open, ..house.sandbox() };
        if mechanism.is_complete() {
            let ended = house.run_in(open, &mechanism, line).await;
            assert!(!ended.output.text().contains("reached"), "{}", ended.output.text());
        }
    }
}

#[tokio::test]
async fn settings_of_the_kernel_cannot_be_opened() {
    for mechanism in mechanisms() {
        let house = House::new();
        // Only opened, because a write would change the machine.
        let line = "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/drop_caches \
                    /proc/sysrq-trigger /sys/kernel/uevent_helper; do (exec 3>>$f) 2>/dev/null && echo opened $f; done; true";
        let ended = house.run(&mechanism, line).await;
        assert_eq!(exit(&ended), (End::Exited(0), String::new()), "{mechanism:?}");
    }
}

#[tokio::test]
async fn inherited_rights_are_removed() {
    for mechanism in mechanisms() {
        let house = House::new();
        let line = "grep -E '^Cap(Prm|Eff|Inh)' /proc/self/status | tr -d '0\\n\\t '; ulimit -c; ls /proc/self/fd | wc -l; mknod disk b 8 0 && echo made";
        let ended = house.run(&mechanism, line).await;
        let text = ended.output.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("CapInh:CapPrm:CapEff:"), "{mechanism:?}: {text}");
        assert!(!text.contains("made"), "{mechanism:?}: {text}");
        // Three, and the directory itself.
        assert_eq!(lines[1].trim(), "4", "{mechanism:?}: {text}");
    }
}

#[tokio::test]
async fn a_command_cannot_keep_its_supervisor_from_ending_it() {
    for mechanism in mechanisms() {
        let house = House::new();
        let script = "import ctypes, os, time\n\
             libc = ctypes.CDLL(None, use_errno=True)\n\
             for pid in [1, os.getppid()] + [int(p) for p in os.listdir('/proc') if p.isdigit()]:\n\
             \x20 if pid != os.getpid() and libc.ptrace(16, pid, 0, 0) == 0: print('attached', pid, flush=True)\n\
             print('tried', flush=True)\n\
             time.sleep(271828)\n";
        write(house.path("work/trace.py"), script).unwrap();
        let mut limits = limits(&house);
        limits.timeout = Duration::from_secs(8);
        let command = command(&house, house.sandbox(), &mechanism, "exec python3 trace.py 271828");
        let ended = run(command, limits, &CancellationToken::new(), &mut |_| {}).await.unwrap();
        let (end, text) = exit(&ended);
        assert_eq!(end, End::TimedOut, "{mechanism:?}: {text}");
        assert_eq!(text, "tried", "{mechanism:?}");
    }
}

fn command(
    house: &House,
    sandbox: Sandbox,
    mechanism: &codewright_workspace::Mechanism,
    line: &str,
) -> Command {
    Command {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), line.into()],
        directory: house.path("work"),
        env: vec![("ROOT".to_owned(), house.path("").to_string_lossy().into_owned())],
        env_remove: Vec::new(),
        confinement: confinement(),
        author: Author::Model,
        sandbox: Some(Arc::new(Confined { sandbox, mechanism: mechanism.clone(), connections: None })),
    }
}

fn limits(house: &House) -> Limits {
    Limits { timeout: Duration::from_secs(60), lines: 1000, bytes: 50_000, spill: house.path("spill/out") }
}
