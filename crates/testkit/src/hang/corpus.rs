//! Hostile commands for the shell tool: they leave processes, flood the output, wait, or ignore signals.
//!
//! `$T` is a time to sleep that only this case has, so that its processes can be found.

/// The name of each command and its command line.
pub(super) const LINES: [(&str, &str); 84] = [
    // Sleepers that hold the pipe, or do not.
    ("sleeper", "sleep $T"),
    ("holder", "(sleep $T; echo late) & echo x"),
    ("holder of errors only", "sleep $T >/dev/null & echo x"),
    ("holder by another number", "exec 7>&1; sleep $T >/dev/null 2>&1 & echo x"),
    ("many holders", "for i in 1 2 3 4 5 6 7 8 9; do sleep $T & done; echo x"),
    ("no holder", "sleep $T </dev/null >/dev/null 2>&1 & echo x"),
    ("closed ends", "sleep $T <&- >&- 2>&- & echo x"),
    ("its own ends closed", "exec <&- >&- 2>&-; sleep $T"),
    ("only input closed", "exec <&-; cat; sleep $T"),
    // Getting away.
    ("setsid", "setsid sleep $T & echo x"),
    ("setsid in front", "setsid -w sleep $T"),
    ("setsid twice", "setsid setsid sleep $T & echo x"),
    ("nohup", "nohup sleep $T >/dev/null 2>&1 & echo x"),
    ("disown", "bash -c 'sleep $T & disown -a; echo x'"),
    ("double fork", "(sleep $T &) ; echo x"),
    ("double fork, own session", "(setsid sh -c 'sleep $T & exec sleep $T' &) ; echo x"),
    ("daemon", "(cd /; umask 0; exec </dev/null >/dev/null 2>&1; setsid sh -c '(sleep $T &)' &) ; echo x"),
    (
        "daemon in python",
        "python3 -c 'import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  os.chdir(\"/\"); [os.close(n) for n in range(3)]; time.sleep($T)\n os._exit(0)\nos.wait()'",
    ),
    (
        "deep daemon",
        "python3 -c 'import os,time\nfor n in range(30):\n if os.fork(): os._exit(0)\n os.setsid()\ntime.sleep($T)'",
    ),
    (
        "group changer",
        "python3 -c 'import os,time\nif os.fork()==0:\n os.setpgid(0,0); time.sleep($T)\nprint(1)'",
    ),
    (
        "into another group",
        "python3 -c 'import os,time\nif os.fork()==0:\n os.setpgid(0,os.getppid()) if 0 else None; os.setpgid(0,0); time.sleep($T)' & echo x",
    ),
    ("no environment", "env -i setsid sleep $T & echo x"),
    ("another directory", "(cd / && setsid sleep $T) & echo x"),
    ("renamed", "bash -c 'exec -a \"(init) S 1 1\" sleep $T' & echo x"),
    ("background shell", "sh -c 'sh -c \"sh -c \\\"sleep $T\\\"\"' & echo x"),
    ("coproc", "bash -c 'coproc sleep $T; echo x'"),
    ("process substitution", "bash -c 'echo x > >(sleep $T)'"),
    ("here document", "cat <<X | sleep $T & echo x\ntext\nX"),
    ("subshell waits", "(sleep $T & wait) & echo x"),
    ("hopping", "hop() { (setsid sh -c 'sleep 0.03; exec sleep $T' &) ; }; hop; hop; hop; echo x"),
    (
        "relay",
        "cat > r$C.sh <<'X'\n[ $1 -gt 0 ] || exec sleep $T\nsetsid sh $0 $(($1-1)) &\nX\nsh r$C.sh 60; echo x",
    ),
    ("endless relay", "cat > e$C.sh <<'X'\nsetsid sh $0 $T &\nX\nsh e$C.sh $T; echo x; sleep 0.1"),
    ("without its supervisor", "sleep $T & setsid sleep $T & kill -9 $PPID; sleep $T"),
    (
        "sends its supervisor the end byte",
        "for s in TERM INT HUP QUIT USR1 PIPE; do kill -$s $PPID; done; sleep $T & echo x",
    ),
    // Deaf.
    ("deaf", "trap '' TERM INT HUP QUIT; sleep $T; sleep $T"),
    ("deaf child", "(trap '' TERM INT HUP; sleep $T; sleep $T) & echo x"),
    ("deaf and away", "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep $T; done' & echo x"),
    ("busy when asked", "trap 'sleep $T' TERM; sleep $T & wait; sleep $T"),
    ("comes again when asked", "trap 'setsid sleep $T &' TERM EXIT; sleep $T & wait"),
    (
        "deaf python",
        "python3 -c 'import signal,time\nfor s in range(1,32):\n  try: signal.signal(s,signal.SIG_IGN)\n  except OSError: pass\nwhile True: time.sleep($T)'",
    ),
    (
        "blocked signals",
        "python3 -c 'import signal,time; signal.pthread_sigmask(signal.SIG_BLOCK,range(1,64)); time.sleep($T)'",
    ),
    // Stopped.
    ("stops itself", "kill -STOP $$; sleep $T"),
    ("stopped child", "sleep $T & kill -STOP $!; echo x"),
    ("stopped child is waited for", "sleep $T & kill -STOP $!; wait"),
    ("stopped and away", "setsid sh -c 'kill -STOP $$; sleep $T' & sleep 0.1; echo x"),
    ("stopped, deaf", "(trap '' TERM; kill -STOP $(sh -c 'echo $PPID'); sleep $T) & sleep 0.1; echo x"),
    (
        "stops and goes on",
        "sleep $T & i=0; while [ $i -lt 20 ]; do kill -STOP $!; kill -CONT $!; i=$((i+1)); done; echo x",
    ),
    // Many.
    ("storm", "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep $T; }; f 5"),
    (
        "storm in the background",
        "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep $T; }; f 5 & echo x",
    ),
    (
        "storm of sessions",
        "python3 -c 'import os,time\nfor n in range(6):\n os.fork(); os.setsid() if os.getpid()!=os.getsid(0) else None\ntime.sleep($T)' & sleep 0.3; echo x",
    ),
    (
        "zombies",
        "python3 -c 'import os,time\nfor n in range(200):\n if os.fork()==0: os._exit(0)\ntime.sleep($T)'",
    ),
    ("orphaned zombies", "for i in 1 2 3 4 5 6 7 8; do (sh -c 'exit 0' & exec sleep $T) & done; echo x"),
    (
        "threads",
        "python3 -c 'import threading,time\nfor n in range(50): threading.Thread(target=time.sleep,args=($T,)).start()'",
    ),
    ("pipeline", "sleep $T | sleep $T | sleep $T | cat"),
    ("pipeline in the background", "sleep $T | sleep $T | cat & echo x"),
    ("short ones for ever", "while :; do /bin/true; done; sleep $T"),
    ("short ones for ever, behind", "(while :; do /bin/true; done; sleep $T) & echo x"),
    // Output.
    ("yes", "yes $T"),
    ("yes behind", "yes $T & echo x"),
    ("zeros", "cat /dev/zero; : $T"),
    ("random", "cat /dev/urandom; : $T"),
    ("one endless line", "tr '\\0' a </dev/zero; : $T"),
    ("half characters", "while :; do printf '\\342\\202'; done; : $T"),
    ("escapes", "while :; do printf '\\033[2J\\033]0;x\\007\\033[31m'; done; : $T"),
    ("carriage returns", "while :; do printf 'a\\r'; done; : $T"),
    ("both ends", "yes out $T & yes err $T >&2"),
    ("big and over", "head -c 30000000 /dev/zero; sleep $T"),
    ("slow drip", "while :; do echo $T; sleep 0.01; done"),
    ("writes on and on", "while :; do echo $T > w$C; done & echo x"),
    ("writes after a request to end", "trap 'while :; do echo $T; done' TERM; sleep $T & wait"),
    // Input.
    ("reads", "cat; read x; sleep $T"),
    ("asks the terminal", "read x </dev/tty; sleep $T"),
    ("password", "python3 -c 'import getpass; getpass.getpass()'; sleep $T"),
    ("fifo reader", "mkfifo f$C; cat f$C; sleep $T"),
    ("fifo writer", "mkfifo g$C; sleep $T > g$C"),
    ("fifo behind", "mkfifo h$C; (cat h$C; sleep $T) & echo x"),
    ("waits on a lock", "exec 9>l$C; flock 9; (sleep $T) & flock l$C true"),
    ("pager", "yes $T | head -c 100000 | ${PAGER:-less}; sleep $T"),
    ("editor", "${EDITOR:-vi} x$C; sleep $T"),
    ("tail", "echo x > t$C; tail -f t$C & tail -f t$C; : $T"),
    // Terminals.
    ("terminal", "script -qc 'sleep $T' /dev/null"),
    ("terminal behind", "script -qc 'sleep $T' /dev/null >/dev/null 2>&1 & sleep 0.2; echo x"),
    ("terminal in python", "python3 -c 'import pty,time\npid,fd=pty.fork()\ntime.sleep($T)'"),
    ("large arguments", "sh -c 'sleep $T & echo ${#1}' sh \"$(head -c 100000 /dev/zero | tr '\\0' a)\""),
];
