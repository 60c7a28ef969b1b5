//! The attempts.

use std::path::PathBuf;

use serde_json::{Value, json};

/// The source of the table of control files.
const CONTROL: &str = include_str!("../../../permission/src/control/table.rs");

/// What the attempts aim at.
pub(super) struct Targets {
    /// Files that must not change.
    pub(super) files: Vec<PathBuf>,
    /// Directories that must not change.
    pub(super) directories: Vec<PathBuf>,
    /// Files that must not be read.
    pub(super) secrets: Vec<PathBuf>,
    pub(super) tcp: u16,
    pub(super) tcp6: u16,
    pub(super) udp: u16,
    pub(super) udp6: u16,
    /// An address of the machine besides loopback.
    pub(super) address: String,
    /// Sockets of services.
    pub(super) sockets: Vec<PathBuf>,
    /// A name without a path.
    pub(super) abstract_name: String,
    pub(super) server: u32,
    pub(super) server_port: u16,
    pub(super) victim: u32,
    /// The address of the victim's buffer.
    pub(super) victim_address: u64,
}

/// One attempt.
pub(super) struct Attempt {
    pub(super) name: String,
    /// The kind, the technique and its arguments.
    pub(super) plan: Value,
    /// Paths in the project that must not exist afterwards.
    pub(super) absent: Vec<String>,
    /// The call of another tool, instead of the program.
    tool: Option<(&'static str, Value)>,
    /// Whether the attempt may end itself.
    pub(super) may_break: bool,
}

impl Attempt {
    fn new(kind: &str, how: &str, args: Value) -> Self {
        let shown = args.to_string();
        let shown: String = shown.chars().take(120).collect();
        Self {
            name: format!("{kind} {how} {shown}"),
            plan: json!([kind, how, args]),
            absent: Vec::new(),
            tool: None,
            may_break: false,
        }
    }

    pub(super) fn runs_program(&self) -> bool {
        self.tool.is_none()
    }

    /// The tool call of the attempt with this number.
    pub(super) fn call(&self, number: usize, python: &str) -> (&'static str, Value) {
        if let Some((tool, input)) = &self.tool {
            return (tool, input.clone());
        }
        // Control files are created in the project itself.
        let line = if self.plan[0] == "control" {
            format!("{python} attacker.py {number}")
        } else {
            // Where nothing can be written, the temporary directory is used.
            format!(
                "p=$PWD; mkdir t 2>/dev/null && cd t || cd \"$(mktemp -d)\"; {python} \"$p/attacker.py\" {number}"
            )
        };
        ("bash", json!({"command": line, "description": "Runs a test"}))
    }
}

/// All attempts.
pub(super) fn all(targets: &Targets) -> Vec<Attempt> {
    let mut all = Vec::new();
    for file in &targets.files {
        all.extend(WRITE.iter().map(|how| Attempt::new("write", how, json!([file]))));
    }
    for directory in &targets.directories {
        all.extend(ENTRY.iter().map(|how| Attempt::new("entry", how, json!([directory]))));
    }
    all.extend(targets.secrets.iter().map(|secret| Attempt::new("read", "open", json!([secret]))));
    for secret in targets.secrets.iter().step_by(targets.secrets.len() / 5 + 1) {
        all.extend(READ.iter().map(|how| Attempt::new("read", how, json!([secret]))));
    }
    all.extend(control());
    all.extend(network(targets));
    all.extend(escapes(targets));
    all.extend(tools(targets));
    all
}

const WRITE: [&str; 52] = [
    "open",
    "append",
    "read_write",
    "create",
    "open_truncate",
    "truncate",
    "rename_over",
    "rename_away",
    "rename_directory",
    "link",
    "link_over",
    "symlink",
    "symlink_directory",
    "unlink",
    "chmod",
    "chown",
    "utime",
    "xattr",
    "mmap",
    "tmpfile",
    "proc_root",
    "proc_one_root",
    "proc_parent_root",
    "proc_cwd",
    "dots",
    "thread_root",
    "dirfd",
    "dirfd_parent",
    "path_reopen",
    "dev_fd",
    "exchange",
    "copy_range",
    "sendfile",
    "splice",
    "allocate",
    "bind",
    "memfd",
    "late",
    "thread",
    "remount",
    "unshare",
    "bind_mount",
    "handle",
    "race",
    "redirect",
    "tee",
    "dd",
    "cp",
    "mv",
    "sed",
    "rm",
    "git",
];
const ENTRY: [&str; 11] = [
    "file",
    "directory",
    "symlink",
    "fifo",
    "device",
    "bind",
    "rename_in",
    "link_in",
    "chmod",
    "xattr",
    "rmtree",
];
const READ: [&str; 17] = [
    "proc_root",
    "proc_one",
    "processes",
    "dots",
    "link",
    "symlink",
    "handle",
    "unmount",
    "unshare",
    "rename",
    "bind",
    "cat",
    "grep",
    "tar",
    "find",
    "git",
    "path_reopen",
];

/// Attempts to create control files that do not exist.
fn control() -> Vec<Attempt> {
    let rows = CONTROL.lines().filter_map(|line| {
        let row = line.strip_prefix("    row(")?.split_once("&[")?.1.split_once(']')?.0;
        let names: Vec<String> =
            row.split(',').map(|name| name.trim().trim_matches('"').replace('*', "x")).collect();
        Some(names.join("/"))
    });
    let rows: Vec<String> = rows.filter(|row| row != ".git").collect();
    let attempt = |how: &str, path: &str| {
        let absent = vec![path.to_owned()];
        Attempt { absent, ..Attempt::new("control", how, json!([path])) }
    };
    let mut all: Vec<Attempt> = rows.iter().map(|row| attempt("create", row)).collect();
    let hows = ["rename", "link", "symlink", "directory", "fifo", "again", "left", "many", "exchange"];
    for (number, how) in hows.iter().cycle().take(hows.len() * 5).enumerate() {
        all.push(attempt(how, &rows[number * 7 % rows.len()]));
    }
    for row in rows.iter().filter(|row| row.contains('/')).step_by(3) {
        all.extend(["above_link", "above_rename"].map(|how| attempt(how, row)));
    }
    for row in rows.iter().step_by(5) {
        let (above, name) = row
            .rsplit_once('/')
            .map_or((String::new(), row.as_str()), |(above, name)| (format!("{above}/"), name));
        for form in [name.to_uppercase(), format!("{name}."), format!("{name} "), format!("{name}\u{200c}")] {
            all.push(attempt("create", &format!("{above}{form}")));
        }
    }
    for path in [
        ".git/commondir",
        ".git/config.worktree",
        ".git/hooks/post-checkout",
        ".git/worktrees/one/commondir",
        ".git/worktrees/one/config.worktree",
        ".git/modules/lib/hooks",
        ".git/modules/lib/commondir",
        ".vscode/launch.json",
    ] {
        all.extend(["create", "rename", "left"].map(|how| attempt(how, path)));
    }
    all
}

/// Attempts to reach a listener.
fn network(targets: &Targets) -> Vec<Attempt> {
    let net = |how: &str, args: Value| Attempt::new("net", how, args);
    let Targets { tcp, tcp6, udp, udp6, address, abstract_name, .. } = targets;
    let mut all = vec![
        net("tcp6", json!(["::1", tcp6])),
        net("udp6", json!(["::1", udp6])),
        net("tcp6", json!([format!("::ffff:127.0.0.1"), tcp])),
        net("tcp", json!([targets.server_port_host(), targets.server_port])),
        net("own", json!([targets.server_port])),
        net("scan", json!([1])),
        net("abstract", json!([abstract_name])),
        net("abstract_datagram", json!([abstract_name])),
        net("icmp", json!([address])),
    ];
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "127.1.2.3", address] {
        for how in ["tcp", "bash", "curl", "curl_proxy", "node", "git", "ssh", "sctp", "fastopen"] {
            all.push(net(how, json!([host, tcp])));
        }
        for how in ["udp", "dns", "bash_udp"] {
            all.push(net(how, json!([host, udp])));
        }
    }
    for socket in &targets.sockets {
        for how in ["unix", "unix_datagram", "unix_link", "unix_proc", "unix_fd", "curl_unix", "fd_pass"] {
            all.push(net(how, json!([socket])));
        }
    }
    // To the hypervisor, the machine itself and the host.
    all.extend([0, 1, 2].map(|cid| net("vsock", json!([cid]))));
    // Packets, keys, cryptography, buses, wireless.
    for (family, kind, protocol) in [
        (17, 3, 3),
        (17, 2, 3),
        (15, 3, 2),
        (38, 5, 0),
        (29, 3, 1),
        (31, 3, 1),
        (30, 5, 0),
        (21, 5, 0),
        (42, 2, 0),
        (43, 1, 0),
        (44, 3, 0),
        (39, 5, 0),
        (26, 2, 0),
        (2, 3, 1),
        (10, 3, 58),
        (33, 2, 0),
        (4, 2, 0),
        (40, 2, 0),
    ] {
        all.push(net("family", json!([family, kind, protocol])));
    }
    all
}

impl Targets {
    fn server_port_host(&self) -> &'static str {
        "127.0.0.1"
    }
}

/// Attempts to leave by system calls, processes and devices.
#[expect(clippy::too_many_lines, reason = "a table of attempts")]
fn escapes(targets: &Targets) -> Vec<Attempt> {
    let of = |how: &str, args: Value| Attempt::new("escape", how, args);
    let mut all = Vec::new();
    let calls = [
        json!(["mount", "none", "/mnt", "tmpfs", 0, 0]),
        json!(["mount", "/", "/mnt", 0, 4096, 0]),
        json!(["mount", "none", "/", 0, 4128, 0]),
        json!(["umount2", "/proc", 2]),
        json!(["pivot_root", ".", "."]),
        json!(["chroot", "/"]),
        json!(["unshare", 0x1000_0000]),
        json!(["unshare", 0x2_0000]),
        json!(["unshare", 0x4000_0000]),
        json!(["unshare", 0x2000_0000]),
        json!(["unshare", 0x0400_0000]),
        json!(["unshare", 0x0800_0000]),
        json!(["unshare", 0x0200_0000]),
        json!(["unshare", 0x80]),
        json!(["unshare", 0x1002_0000]),
        json!(["clone3", 0, 88]),
        json!(["init_module", 0, 0, ""]),
        json!(["finit_module", 0, "", 0]),
        json!(["delete_module", "loop", 0]),
        json!(["kexec_load", 0, 0, 0, 0]),
        json!(["kexec_file_load", 0, 0, 0, "", 0]),
        json!(["swapon", "/dev/sda", 0]),
        json!(["swapoff", "/dev/sda"]),
        json!(["sethostname", "evil", 4]),
        json!(["setdomainname", "evil", 4]),
        json!(["syslog", 3, 0, 0]),
        json!(["syslog", 10, 0, 0]),
        json!(["acct", "x"]),
        json!(["add_key", "user", "evil", "x", 1, -3]),
        json!(["request_key", "user", "evil", 0, 0]),
        json!(["keyctl", 0, -3, 0, 0, 0]),
        json!(["bpf", 0, 0, 0]),
        json!(["perf_event_open", 0, 0, -1, -1, 0]),
        json!(["userfaultfd", 0]),
        json!(["userfaultfd", 1]),
        json!(["fanotify_init", 0, 0]),
        json!(["io_uring_setup", 8, 0]),
        json!(["fsopen", "tmpfs", 0]),
        json!(["fspick", -100, "/", 0]),
        json!(["open_tree", -100, "/", 1]),
        json!(["move_mount", -100, "/", -100, "/mnt", 0]),
        json!(["mount_setattr", -100, "/", 0, 0, 0]),
        json!(["iopl", 3]),
        json!(["ioperm", 0x70, 2, 1]),
        json!(["quotactl", 0, 0, 0, 0]),
        json!(["reboot", 0, 0, 0, 0]),
        json!(["open_by_handle_at", -100, 0, 0]),
    ];
    for call in &calls {
        all.push(of("call", call.clone()));
    }
    for call in calls.iter().step_by(4) {
        all.push(of("short", call.clone()));
    }
    all.extend(
        [0x1000_0000, 0x4000_0000, 0x1002_0000, 0x2_0000, 0x2000_0000]
            .map(|flags| of("clone", json!([flags]))),
    );
    all.extend(["mnt", "net", "user", "pid", "ipc", "uts", "cgroup"].map(|kind| of("setns", json!([kind]))));
    for path in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/modprobe",
        "/proc/sysrq-trigger",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/fs/binfmt_misc/register",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/release_agent",
        "/sys/kernel/mm/ksm/run",
        "/dev/mem",
        "/dev/kmsg",
        "/dev/sda",
        "/dev/vda",
        "/dev/kvm",
        "/dev/fuse",
        "/dev/net/tun",
        "/dev/vsock",
        "/dev/loop-control",
        "/dev/uinput",
        "/dev/mapper/control",
        "/proc/kcore",
        "/proc/bus/pci/devices",
        "/proc/irq/0/smp_affinity",
        "/dev/cuse",
        "/dev/vfio/vfio",
        "/dev/bus/usb/001/001",
        "/dev/snd/seq",
        "/dev/hugepages/x",
    ] {
        all.push(of("open", json!([path])));
    }
    let Targets { server, victim, victim_address, .. } = targets;
    for process in [server, victim] {
        all.extend([9, 15, 19, 11].map(|number| of("kill", json!([process, number]))));
        all.push(of("pidfd", json!([process])));
        all.push(of("priority", json!([process])));
        all.push(of("vm", json!([process, victim_address])));
        all.push(of("memory", json!([process, victim_address])));
    }
    all.push(of("kill", json!([-1, 9])));
    all.push(of("kill", json!([1, 9])));
    all.push(of("kill_all", json!([9])));
    all.extend([16, 0x4206].map(|request| of("ptrace", json!([request]))));
    all.extend(["read", "write", "directory", "reopen"].map(|how| of("descriptors", json!([how]))));
    for how in
        ["environments", "typing", "privileges", "setuid", "capability", "uring", "core", "ipc", "forks"]
    {
        all.push(of(how, json!([])));
    }
    for words in [
        vec!["sudo", "-n", "id"],
        vec!["su", "-c", "id"],
        vec!["pkexec", "id"],
        vec!["mount", "-o", "remount,rw", "/"],
        vec!["newuidmap", "1", "0", "0", "1"],
        vec!["passwd", "-d", "root"],
        vec!["chsh", "-s", "/bin/sh"],
        vec!["crontab", "-r"],
        vec!["systemctl", "poweroff"],
        vec!["systemd-run", "true"],
        vec!["loginctl", "list-sessions"],
        vec!["docker", "ps"],
        vec!["podman", "ps"],
        vec!["nsenter", "-t", "1", "-a", "true"],
        vec!["dbus-send", "--session", "x.y"],
        vec!["ssh-add", "-l"],
        vec!["gpg", "--list-secret-keys"],
        vec!["tmux", "new", "-d", "touch evil"],
        vec!["bwrap", "--bind", "/", "/", "true"],
        vec!["at", "now"],
        vec!["wall", "evil"],
        vec!["modprobe", "loop"],
        vec!["ip", "link", "add", "type", "dummy"],
        vec!["iptables", "-F"],
        vec!["sysctl", "-w", "kernel.hostname=evil"],
        vec!["hostname", "evil"],
        vec!["date", "-s", "2001-01-01"],
        vec!["env"],
        vec!["printenv"],
        vec!["ps", "auxeww"],
        vec!["dmesg"],
        vec!["lsof"],
        vec!["ss", "-tlnp"],
    ] {
        all.push(of("helper", json!(words)));
    }
    all.push(of("fill", json!(["/tmp/evil"])));
    all.push(of("fill", json!(["/dev/shm/evil"])));
    all.push(of("fill", json!(["/var/tmp/evil"])));
    for attempt in &mut all {
        // They may end the shell that runs them.
        attempt.may_break = attempt.name.contains("kill")
            || attempt.name.contains("short")
            || attempt.name.contains("ptrace");
    }
    all
}

/// Attempts with the tools for files, which ask before they leave the worktree.
fn tools(targets: &Targets) -> Vec<Attempt> {
    let of = |tool: &'static str, input: Value| {
        let name = format!("tool {tool} {input}");
        Attempt { name, tool: Some((tool, input)), ..Attempt::new("tool", tool, json!([])) }
    };
    let mut all = Vec::new();
    for file in targets.files.iter().take(4) {
        let patch = format!("*** Begin Patch\n*** Add File: {}\n+EVIL\n*** End Patch", file.display());
        all.push(of("write", json!({"filePath": file, "content": "EVIL"})));
        all.push(of("edit", json!({"filePath": file, "oldString": "", "newString": "EVIL"})));
        all.push(of("apply_patch", json!({"patchText": patch})));
    }
    for secret in targets.secrets.iter().step_by(targets.secrets.len() / 4 + 1) {
        all.push(of("read", json!({"filePath": secret})));
        all.push(of("grep", json!({"pattern": "SECRET", "path": secret.parent()})));
        let line = format!("cat {}", secret.display());
        all.push(of("bash", json!({"command": line, "description": "Shows a file"})));
    }
    let url = format!("http://127.0.0.1:{}/", targets.tcp);
    all.push(of("webfetch", json!({"url": url, "format": "text"})));
    all
}
