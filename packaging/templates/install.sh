#!/bin/sh
# Installs codewright for the current user: downloads the archive of a release, checks its digest, and puts the program
# into one directory. Changes no other file, needs no root, and never edits start-up files of a shell.
#
#   sh install.sh [--version VERSION] [--dir DIRECTORY] [--target TARGET] [--dry-run] [--uninstall] [--help]
#
# CODEWRIGHT_INSTALL_DIR and CODEWRIGHT_RELEASES replace the directory and the address of the releases.
set -eu

SOURCE="${CODEWRIGHT_RELEASES:-@SOURCE@}"
KEY='@KEY@'
VERSION='@VERSION@'
RECEIPT=codewright.receipt.json

say() { printf '%s\n' "$*"; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

usage() {
    say 'usage: sh install.sh [--version VERSION] [--dir DIRECTORY] [--target TARGET] [--dry-run] [--uninstall]'
    say ''
    say 'Installs codewright for the current user. The default directory is ~/.local/bin.'
    say '--dry-run prints what would be done. --uninstall removes the program and its receipt, not your sessions;'
    say '`codewright uninstall` removes both.'
}

# The name of the archive's system. Programs for musl run on every Linux.
detect() {
    system=$(uname -s)
    machine=$(uname -m)
    case "$machine" in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no program for the processor $machine; build it from source" ;;
    esac
    case "$system" in
    Linux)
        libc=musl
        # A glibc of at least 2.@GLIBC@ runs the other build, which is faster with many threads.
        if has ldd; then
            found=$(ldd --version 2>&1 | sed -n '1s/.* \([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p') || found=
            case "$(ldd --version 2>&1)" in
            *musl*) ;;
            *)
                major=${found%%.*}
                minor=${found#*.}
                if [ "${major:-0}" -eq 2 ] 2>/dev/null && [ "${minor:-0}" -ge @GLIBC@ ] 2>/dev/null; then libc=gnu; fi
                ;;
            esac
        fi
        say "$machine-unknown-linux-$libc"
        ;;
    Darwin) say "$machine-apple-darwin" ;;
    *) fail "there is no program for $system; on Windows run install.ps1 in PowerShell" ;;
    esac
}

# Downloads an address into a file. Only HTTPS, or a server on this machine.
fetch() {
    case "$1" in
    https://* | http://127.0.0.1:* | http://localhost:*) ;;
    *) fail "only https is used, not $1" ;;
    esac
    if has curl; then
        curl -fsSL --connect-timeout 20 --max-time 600 --max-filesize 100000000 -o "$2" "$1" || return 1
    elif has wget; then
        wget -q -T 60 -O "$2" "$1" || return 1
    else
        fail 'curl or wget is needed'
    fi
}

digest() {
    if has sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    elif has openssl; then
        openssl dgst -sha256 "$1" | sed 's/.* //'
    else
        fail 'sha256sum, shasum or openssl is needed to check the download'
    fi
}

remove() {
    [ -e "$dir/$RECEIPT" ] || fail "$dir has no codewright of this script"
    if [ "$dry" = yes ]; then
        say "would remove $dir/codewright, $dir/codewright.previous and $dir/$RECEIPT"
        return
    fi
    rm -f "$dir/codewright" "$dir/codewright.previous" "$dir/$RECEIPT"
    say "removed codewright from $dir; your sessions and settings are kept"
}

main() {
    dir="${CODEWRIGHT_INSTALL_DIR:-}"
    target=
    dry=no
    action=install
    while [ $# -gt 0 ]; do
        case "$1" in
        --version | --dir | --target)
            [ $# -ge 2 ] || fail "$1 needs a value"
            case "$1" in
            --version) VERSION=${2#v} ;;
            --dir) dir=$2 ;;
            --target) target=$2 ;;
            esac
            shift
            ;;
        --dry-run) dry=yes ;;
        --uninstall) action=remove ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) fail "unknown argument $1; see --help" ;;
        esac
        shift
    done
    if [ -z "$dir" ]; then
        [ -n "${HOME:-}" ] || fail 'HOME is not set; name a directory with --dir'
        dir="$HOME/.local/bin"
    fi
    case "$VERSION" in
    '' | *[!0-9A-Za-z.+-]*) fail "$VERSION is not a version" ;;
    esac
    if [ "$action" = remove ]; then
        remove
        exit 0
    fi
    [ -n "$target" ] || target=$(detect)
    case "$target" in
    *[!0-9A-Za-z_-]*) fail "$target is not the name of a system" ;;
    esac
    name="codewright-$VERSION-$target"
    from="$SOURCE/download/v$VERSION"
    if [ "$dry" = yes ]; then
        say "would download $from/$name.tar.gz"
        say "would check it with $from/SHA256SUMS"
        say "would write $dir/codewright and $dir/$RECEIPT"
        exit 0
    fi
    if [ -e "$dir/codewright" ] && [ ! -e "$dir/$RECEIPT" ]; then
        fail "$dir/codewright exists and is not from this script; remove it or use --dir"
    fi
    mkdir -p "$dir" 2>/dev/null || fail "cannot create $dir; choose another directory with --dir"
    work=$(mktemp -d "$dir/.codewright-install.XXXXXX" 2>/dev/null) || fail "cannot write in $dir; choose another directory with --dir"
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    install
}

install() {
    say "downloading codewright $VERSION for $target"
    fetch "$from/SHA256SUMS" "$work/SHA256SUMS" || fail "cannot download $from/SHA256SUMS; nothing was changed"
    expected=$(awk -v name="$name.tar.gz" '$2 == name || $2 == "*" name { print $1; exit }' "$work/SHA256SUMS")
    [ -n "$expected" ] || fail "release $VERSION has no archive for $target; nothing was changed"
    # The signature of the list is checked if minisign is there. Without it the digest comes from the same server.
    if has minisign && [ -n "$KEY" ]; then
        fetch "$from/SHA256SUMS.minisig" "$work/SHA256SUMS.minisig" || fail 'the release has no signature; nothing was changed'
        minisign -Vqm "$work/SHA256SUMS" -P "$KEY" >/dev/null || fail 'the signature of the release is wrong; nothing was changed'
    fi
    fetch "$from/$name.tar.gz" "$work/archive" || fail "cannot download $from/$name.tar.gz; nothing was changed"
    actual=$(digest "$work/archive")
    [ "$actual" = "$expected" ] || fail "the download has another digest than the release says: it is damaged or was changed; nothing was changed"
    # Only the program is unpacked.
    tar -xzf "$work/archive" -C "$work" "$name/codewright" || fail 'cannot unpack the archive; nothing was changed'
    new="$work/$name/codewright"
    chmod 755 "$new"
    found=$("$new" --version 2>/dev/null) || fail 'the program does not run on this machine; nothing was changed'
    case "$found" in
    "$VERSION"*) ;;
    *) fail "the archive has version $found instead of $VERSION; nothing was changed" ;;
    esac
    printf '{"method":"script","version":"%s","target":"%s","source":"%s","key":"%s"}\n' \
        "$VERSION" "$target" "$SOURCE" "$KEY" >"$work/receipt" || fail 'cannot write; nothing was changed'
    if [ -e "$dir/codewright" ]; then
        ln -f "$dir/codewright" "$dir/codewright.previous" 2>/dev/null || cp "$dir/codewright" "$dir/codewright.previous"
    fi
    mv -f "$new" "$dir/codewright"
    mv -f "$work/receipt" "$dir/$RECEIPT"
    say "installed $dir/codewright"
    first=$(command -v codewright 2>/dev/null) || first=
    case "$first" in
    "$dir/codewright") ;;
    '') say "add $dir to PATH: export PATH=\"$dir:\$PATH\"" ;;
    *) say "warning: PATH has another program of this name first: $first" ;;
    esac
    say 'next: `codewright demo` needs no key; `codewright providers login` stores one'
}

main "$@"
