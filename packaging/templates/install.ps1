# Installs codewright for the current user: downloads the archive of a release, checks its digest, and puts the program
# into one directory. Changes no other file and no PATH, and needs no administrator.
#
#   powershell -ExecutionPolicy Bypass -File install.ps1 [-Version VERSION] [-Dir DIRECTORY] [-DryRun] [-Uninstall]
#
# CODEWRIGHT_INSTALL_DIR and CODEWRIGHT_RELEASES replace the directory and the address of the releases.
[CmdletBinding()]
param(
    [string]$Version = '@VERSION@',
    [string]$Dir = $env:CODEWRIGHT_INSTALL_DIR,
    [switch]$DryRun,
    [switch]$Uninstall
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
# The progress bar of Windows PowerShell makes downloads many times slower.
$ProgressPreference = 'SilentlyContinue'

$source = if ($env:CODEWRIGHT_RELEASES) { $env:CODEWRIGHT_RELEASES } else { '@SOURCE@' }
$key = '@KEY@'
$target = 'x86_64-pc-windows-msvc'

function Stop-Install([string]$Message) {
    [Console]::Error.WriteLine("error: $Message")
    exit 1
}

# Downloads an address into a file. Only HTTPS, or a server on this machine.
function Get-File([string]$Address, [string]$Path) {
    if ($Address -notmatch '^(https://|http://(127\.0\.0\.1|localhost):)') {
        Stop-Install "only https is used, not $Address"
    }
    try {
        Invoke-WebRequest -UseBasicParsing -Uri $Address -OutFile $Path -TimeoutSec 600
    } catch {
        Stop-Install "cannot download $Address ($($_.Exception.Message)); nothing was changed"
    }
}

function Remove-Program {
    if (-not (Test-Path -LiteralPath $receipt)) { Stop-Install "$Dir has no codewright of this script" }
    if ($DryRun) {
        Write-Output "would remove $program, $previous and $receipt"
        return
    }
    foreach ($path in @($program, $previous, $receipt)) {
        if (Test-Path -LiteralPath $path) { Remove-Item -LiteralPath $path -Force }
    }
    Write-Output "removed codewright from $Dir; your sessions and settings are kept"
}

# Checks the list of digests: with minisign if it is installed, otherwise the list comes from the same server as the archive.
function Test-List([string]$List) {
    if (-not $key -or -not (Get-Command minisign -ErrorAction SilentlyContinue)) { return }
    Get-File "$from/SHA256SUMS.minisig" "$List.minisig"
    & minisign -Vqm $List -P $key | Out-Null
    if ($LASTEXITCODE -ne 0) { Stop-Install 'the signature of the release is wrong; nothing was changed' }
}

function Install-Program([string]$Work) {
    Write-Output "downloading codewright $Version for $target"
    $list = Join-Path $Work 'SHA256SUMS'
    Get-File "$from/SHA256SUMS" $list
    Test-List $list
    $expected = $null
    foreach ($line in Get-Content -LiteralPath $list) {
        $fields = $line -split '\s+', 2
        if ($fields.Count -eq 2 -and $fields[1].TrimStart('*') -eq "$name.zip") { $expected = $fields[0] }
    }
    if (-not $expected) { Stop-Install "release $Version has no archive for $target; nothing was changed" }
    $archive = Join-Path $Work 'archive.zip'
    Get-File "$from/$name.zip" $archive
    $actual = (Get-FileHash -LiteralPath $archive -Algorithm SHA256).Hash
    if ($actual -ne $expected) {
        Stop-Install 'the download has another digest than the release says: it is damaged or was changed; nothing was changed'
    }
    Expand-Archive -LiteralPath $archive -DestinationPath (Join-Path $Work 'unpacked')
    $new = Join-Path $Work "unpacked\$name\codewright.exe"
    $found = & $new --version
    if ($LASTEXITCODE -ne 0) { Stop-Install 'the program does not run on this machine; nothing was changed' }
    if (-not "$found".StartsWith($Version)) {
        Stop-Install "the archive has version $found instead of $Version; nothing was changed"
    }
    # A program that runs cannot be replaced, but it can be renamed.
    if (Test-Path -LiteralPath $program) { Move-Item -LiteralPath $program -Destination $previous -Force }
    try {
        Move-Item -LiteralPath $new -Destination $program
        $content = [ordered]@{ method = 'script'; version = $Version; target = $target; source = $source; key = $key }
        [IO.File]::WriteAllText($receipt, ($content | ConvertTo-Json -Compress))
    } catch {
        if (Test-Path -LiteralPath $previous) { Move-Item -LiteralPath $previous -Destination $program -Force }
        Stop-Install "cannot write in ${Dir}: $($_.Exception.Message); the old program is back"
    }
    Write-Output "installed $program"
    if (($env:PATH -split ';') -notcontains $Dir) {
        Write-Output "add $Dir to PATH: `$env:PATH = '$Dir;' + `$env:PATH"
    }
    Write-Output 'next: `codewright demo` needs no key; `codewright providers login` stores one'
}

if ($Version -notmatch '^[0-9A-Za-z.+-]+$') { Stop-Install "$Version is not a version" }
if (-not $Dir) {
    if (-not $env:LOCALAPPDATA) { Stop-Install 'LOCALAPPDATA is not set; name a directory with -Dir' }
    $Dir = Join-Path $env:LOCALAPPDATA 'Programs\codewright'
}
$program = Join-Path $Dir 'codewright.exe'
$previous = Join-Path $Dir 'codewright.previous.exe'
$receipt = Join-Path $Dir 'codewright.receipt.json'
if ($Uninstall) {
    Remove-Program
    exit 0
}
if ($env:PROCESSOR_ARCHITECTURE -notin @('AMD64', 'ARM64')) {
    Stop-Install "there is no program for the processor $($env:PROCESSOR_ARCHITECTURE); build it from source"
}
$name = "codewright-$Version-$target"
$from = "$source/download/v$Version"
if ($DryRun) {
    Write-Output "would download $from/$name.zip"
    Write-Output "would check it with $from/SHA256SUMS"
    Write-Output "would write $program and $receipt"
    exit 0
}
if ((Test-Path -LiteralPath $program) -and -not (Test-Path -LiteralPath $receipt)) {
    Stop-Install "$program exists and is not from this script; remove it or use -Dir"
}
try {
    $work = Join-Path $Dir ('.install-' + [Guid]::NewGuid().ToString('N'))
    New-Item -ItemType Directory -Force -Path $work | Out-Null
} catch {
    Stop-Install "cannot write in $Dir; choose another directory with -Dir"
}
try {
    Install-Program $work
} finally {
    Remove-Item -LiteralPath $work -Recurse -Force -ErrorAction SilentlyContinue
}
