//! Protected names, and programs that create other files, in a sandbox that checks each new entry.

use std::fs::{create_dir_all, read_to_string, write};
use std::os::unix::fs::PermissionsExt as _;

use codewright_workspace::{End, Guarded, Sandbox};

use crate::sandboxed::{House, complete, exit, mechanisms};

/// A sandbox with names in the worktree and below.
fn named(house: &House) -> Sandbox {
    let row = |directory: &str, patterns: &[&str]| Guarded {
        directory: house.path(directory),
        patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
        except: Vec::new(),
    };
    let guarded = vec![row("work", &["opencode.json*", ".opencode"]), row("work/.vscode", &["tasks.json"])];
    Sandbox { guarded, ..house.sandbox() }
}

#[tokio::test]
async fn no_way_creates_a_protected_name() {
    for mechanism in mechanisms() {
        let house = House::new();
        for line in [
            "touch opencode.json",
            "mkdir .opencode",
            "echo x > f; mv f opencode.json",
            "echo x > f; ln f opencode.json",
            "echo x > f; ln -s f opencode.json",
            "ln -s opencode.json link; echo x > link",
            "mkdir d; ln -s d/../../work here; echo x > here/opencode.json",
            "mkdir -p src; cd src; echo x > ../opencode.json",
            "mkdir -p t/.opencode; tar -C t -cf t.tar .opencode; tar xf t.tar",
            "mkfifo opencode.json",
            "cp /etc/hostname opencode.json",
            "dd if=/etc/hostname of=opencode.json",
            "mkdir x; echo x > x/tasks.json; mv -T x .vscode",
            "mkdir y; echo x > y/tasks.json; ln -s y .vscode",
            "mkdir z .vscode; echo x > z/tasks.json; mv --exchange z .vscode",
            "echo x > OpenCode.JSON",
            "python3 -c \"import os; d=os.open('.',0); os.mkdir('.opencode', dir_fd=d)\"",
            "python3 -c \"import os; f=os.open('.',os.O_TMPFILE|os.O_WRONLY); os.link('/proc/self/fd/%d'%f,'opencode.json',src_dir_fd=f)\"",
            "python3 -c \"import socket; s=socket.socket(socket.AF_UNIX); s.bind('s'); import os; os.rename('s','opencode.json')\"",
            "git init -q sub; git init -q a/b/c; git clone -q . clone",
            "mkdir -p r/objects r/refs; echo ref: refs/heads/main > r/HEAD; echo x > r/config",
            "mkdir -p q/objects q/refs; echo x > q/config; echo ref: refs/heads/main > q/HEAD",
            "git init -q --bare bare.git",
            "mkdir m; echo 'gitdir: ../evil' > m/.git",
            "sh -c 'echo x > /proc/self/cwd/opencode.json'",
            "exec 9<.; echo x > /proc/self/fd/9/opencode.json",
        ] {
            let ended = house.run_in(named(&house), &mechanism, line).await;
            assert!(!matches!(ended.end, End::TimedOut), "{mechanism:?}: {line}");
            let at = |name: &str| house.path("work").join(name);
            let names = [
                "opencode.json",
                ".opencode",
                ".vscode/tasks.json",
                "OpenCode.JSON",
                "sub/.git",
                "a/b/c/.git",
                "clone/.git",
                "r/config",
                "q/HEAD",
                "bare.git/objects",
                "m/.git",
            ];
            for name in names {
                assert!(at(name).symlink_metadata().is_err(), "{mechanism:?}: {line} created {name}");
            }
        }
    }
}

#[tokio::test]
async fn threads_that_change_the_path_win_nothing() {
    let script = r#"
import ctypes, mmap, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
shared = mmap.mmap(-1, 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(shared))
names = [b'aaaaaaaa.json\0', b'opencode.json\0']
until = time.time() + 1.5
if os.fork() == 0:
    while time.time() < until:
        for name in names: shared[0:14] = name
    os._exit(0)
def flip():
    while time.time() < until:
        for name in names: shared[0:14] = name
threading.Thread(target=flip).start()
os.mkdir('source')
made = 0
while time.time() < until:
    for number, rest in [(2, (0o102, 0o644)), (83, (0o755,)), (85, (0o644,)), (133, (0o100644, 0))]:
        result = libc.syscall(number, ctypes.c_void_p(address), *rest)
        if result > 2: os.close(result)
        made += result >= 0
        for clean in (os.unlink, os.rmdir):
            try: clean('aaaaaaaa.json')
            except OSError: pass
    libc.symlink(b'x', ctypes.c_void_p(address)); libc.link(b'race.py', ctypes.c_void_p(address))
print('made', made > 0, os.path.lexists('opencode.json'))
"#;
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    for mechanism in mechanisms() {
        let house = House::new();
        write(house.path("work/race.py"), script).unwrap();
        let ended = house.run_in(named(&house), &mechanism, "python3 race.py").await;
        assert_eq!(exit(&ended), (End::Exited(0), "made True False".to_owned()), "{mechanism:?}");
    }
}

#[tokio::test]
async fn ordinary_programs_work() {
    let Some(mechanism) = complete() else { return };
    for (line, expected) in [
        ("umask 077; touch a; mkdir d; umask 002; touch b; stat -c %a a d b", "600\n700\n664"),
        ("touch a; mkdir d; stat -c %a a d", "644\n755"),
        ("mkfifo p; cat p & echo through > p; wait", "through"),
        (
            "echo out > /dev/stdout; echo err > /dev/stderr; echo x > /dev/null; echo fd > /dev/fd/1",
            "out\nerr\nfd",
        ),
        ("ln -s /dev/stdout log; echo linked > log", "linked"),
        ("exec > f; echo one; echo two > /proc/self/fd/1; exec 1>&2; cat f", "two"),
        ("ln -s target link; echo x > link; cat target", "x"),
        ("set -C; echo x > f; (echo y > f) 2>/dev/null || echo kept; cat f", "kept\nx"),
        ("echo a > f; echo b >> f; cat f; ln f g; mv g h; ln -s f s; cat h s", "a\nb\na\nb\na\nb"),
        ("mkdir -p a/b/c; cd a/b; echo x > c/f; cp -a ../../a /tmp/copy; cat /tmp/copy/b/c/f", "x"),
        (
            "touch file; mkdir file 2>&1 | grep -o 'File exists'; mkdir none/x 2>&1 | grep -o 'No such file'",
            "File exists\nNo such file",
        ),
        (
            "ulimit -n 20; python3 -c \"\nimport errno\nk=[]\ntry:\n  for i in range(99): k.append(open('f%d'%i,'w'))\nexcept OSError as e: print(errno.errorcode[e.errno])\"",
            "EMFILE",
        ),
        (
            "python3 -c \"import os,tempfile\nwith tempfile.TemporaryFile(dir='.') as f: f.write(b'x')\nf=os.open('.',os.O_TMPFILE|os.O_RDWR); os.link('/proc/self/fd/%d'%f,'named',src_dir_fd=f); print(os.path.exists('named'))\"",
            "True",
        ),
        (
            "python3 -c \"import signal,os\nsignal.signal(signal.SIGALRM,lambda *a:None); signal.siginterrupt(signal.SIGALRM,False); signal.setitimer(signal.ITIMER_REAL,.0002,.0002)\nfor i in range(3000): os.mkdir('d%d'%i); os.close(os.open('f%d'%i,os.O_CREAT|os.O_EXCL|os.O_WRONLY))\nsignal.setitimer(signal.ITIMER_REAL,0); print(len(os.listdir('.')) > 6000)\"",
            "True",
        ),
        (
            "python3 -c \"import ctypes; ctypes.CDLL(None).prctl(4,0,0,0,0); open('hidden','w').write('x'); print(open('hidden').read())\"",
            "x",
        ),
        (
            "python3 -c \"import os; os.fchdir(os.open('/',0)); print(os.path.exists(os.environ['ROOT']))\"",
            "True",
        ),
        ("git -c user.name=a -c user.email=a@b add -A 2>&1; echo done", "done"),
        (
            "for i in 1 2 3 4; do (for j in $(seq 50); do echo x > f$i-$j; done) & done; wait; ls | grep -c ^f",
            "200",
        ),
        ("touch t; rm t; mkdir e; rmdir e; mv $ROOT/work/.git/index.lock x 2>/dev/null; echo ok", "ok"),
        (
            "python3 -c \"import socket; s=socket.socket(socket.AF_UNIX); s.bind('sock'); print('bound')\"",
            "bound",
        ),
        ("truncate -s 5 f; stat -c %s f; : > f; stat -c %s f; install -m 750 f g; stat -c %a g", "5\n0\n750"),
    ] {
        let house = House::new();
        std::fs::set_permissions(house.path("work"), std::fs::Permissions::from_mode(0o755)).unwrap();
        create_dir_all(house.path("work/.git/objects")).unwrap();
        create_dir_all(house.path("work/.git/refs")).unwrap();
        write(house.path("work/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let line = format!("umask 022; {line}");
        let ended = house.run_in(named(&house), &mechanism, &line).await;
        assert_eq!(ended.output.text().trim(), expected, "{line}");
    }
}

#[tokio::test]
async fn names_that_packages_contain_are_created_in_packages_only() {
    let Some(mechanism) = complete() else { return };
    let house = House::new();
    for (line, file, is_refused) in [
        ("mkdir -p sub/a && echo x > sub/a/.npmrc", "sub/a/.npmrc", true),
        ("mkdir -p node_modules/a && echo x > node_modules/a/.npmrc", "node_modules/a/.npmrc", false),
        ("mv node_modules/a lib", "lib/.npmrc", true),
        (
            "mkdir -p node_modules/b && echo x > node_modules/b/.npmrc && mv node_modules/b node_modules/c",
            "node_modules/c/.npmrc",
            false,
        ),
        ("ln node_modules/c/.npmrc sub/.npmrc", "sub/.npmrc", true),
        ("mv node_modules other", "other/c/.npmrc", true),
        (
            "mkdir -p new/x && echo x > new/x/y && mv new node_modules/new && mv node_modules/new/x x",
            "x/y",
            false,
        ),
    ] {
        let ended = house.run_in(named(&house), &mechanism, line).await;
        let text = ended.output.text();
        assert_eq!(!house.path("work").join(file).exists(), is_refused, "{line}: {text}");
        assert_eq!(!ended.refused_names.is_empty(), is_refused, "{line}: {text}");
    }
}

#[tokio::test]
async fn existing_protected_names_deeper_in_the_worktree_are_not_written_by_ordinary_programs() {
    let Some(mechanism) = complete() else { return };
    let house = House::new();
    create_dir_all(house.path("work/lib/.git")).unwrap();
    write(house.path("work/lib/.git/config"), "[user]\n").unwrap();
    for line in [
        "echo evil >> lib/.git/config",
        "python3 -c \"open('lib/.git/config','r+').write('evil')\"",
        "sed -i s/user/evil/ lib/.git/config",
        "ln lib/.git/config copy; echo evil > copy",
        "git config -f lib/.git/config core.fsmonitor evil",
    ] {
        let ended = house.run_in(named(&house), &mechanism, line).await;
        assert_eq!(read_to_string(house.path("work/lib/.git/config")).unwrap(), "[user]\n", "{line}");
        assert!(!ended.refused_names.is_empty(), "{line}: {}", ended.output.text());
    }
    let ended = house
        .run_in(
            named(&house),
            &mechanism,
            "echo x > lib/.git/index.lock && mv lib/.git/index.lock lib/.git/index",
        )
        .await;
    assert_eq!(ended.end, End::Exited(0), "{}", ended.output.text());
}
