// Finds the program, and builds it with the user's consent. The extension contains no program and downloads none.
import { constants, promises as fs } from "node:fs"
import { homedir } from "node:os"
import * as path from "node:path"
import * as vscode from "vscode"

const NAME = process.platform === "win32" ? "codewright.exe" : "codewright"

/** Returns the paths at which the program is looked for, in order. Relative entries of PATH are ignored. */
export function candidates(setting: string, searchPath: string, home: string): string[] {
  if (setting !== "") return path.isAbsolute(setting) ? [setting] : []
  const folders = searchPath.split(path.delimiter).filter((folder) => path.isAbsolute(folder))
  return [...folders, path.join(home, ".cargo", "bin"), path.join(home, ".local", "bin")].map((folder) =>
    path.join(folder, NAME),
  )
}

export async function findProgram(): Promise<string | null> {
  // The setting belongs to the machine, so the value of a workspace is never used.
  const found = vscode.workspace.getConfiguration("codewright").inspect<string>("path")
  const setting = (found?.globalValue ?? "").trim()
  const roots = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath)
  for (const candidate of candidates(setting, process.env["PATH"] ?? "", homedir())) {
    // A program inside the workspace belongs to the repository, unless the user has named it.
    const isForeign = setting === "" && roots.some((root) => candidate.startsWith(root + path.sep))
    if (!isForeign && (await isExecutable(candidate))) return candidate
  }
  return null
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await fs.access(file, constants.X_OK)
    return (await fs.stat(file)).isFile()
  } catch {
    return false
  }
}

const CHOOSE = "Choose the Program…"
const BUILD = "Build from a Checkout…"

/** Offers to choose or to build the program. Returns whether it can be found now. */
export async function locate(): Promise<boolean> {
  const found = await findProgram()
  const text =
    found === null ? "The program `codewright` was not found on PATH or in ~/.cargo/bin." : `The program is ${found}.`
  const choice = await vscode.window.showInformationMessage(text, CHOOSE, BUILD)
  if (choice === CHOOSE) return choose()
  if (choice === BUILD) await buildFromCheckout()
  return false
}

async function choose(): Promise<boolean> {
  const picked = await vscode.window.showOpenDialog({ title: "The program codewright", canSelectMany: false })
  const file = picked?.[0]?.fsPath
  if (file === undefined) return false
  if (!(await isExecutable(file))) {
    void vscode.window.showErrorMessage(`${file} is not a program.`)
    return false
  }
  await vscode.workspace.getConfiguration("codewright").update("path", file, vscode.ConfigurationTarget.Global)
  return true
}

/** Builds the program in a terminal, after the user has seen the command and agreed. */
async function buildFromCheckout(): Promise<void> {
  const picked = await vscode.window.showOpenDialog({
    title: "A checkout of Codewright",
    canSelectFiles: false,
    canSelectFolders: true,
    canSelectMany: false,
  })
  const folder = picked?.[0]?.fsPath
  if (folder === undefined) return
  const crate = path.join(folder, "crates", "codewright")
  try {
    await fs.access(path.join(crate, "Cargo.toml"))
  } catch {
    void vscode.window.showErrorMessage(`${folder} is not a checkout of Codewright.`)
    return
  }
  const args = ["install", "--locked", "--path", crate]
  const agreed = await vscode.window.showWarningMessage(
    "Build and install Codewright?",
    { modal: true, detail: `This command runs in a terminal, and takes some minutes:\n\ncargo ${args.join(" ")}` },
    "Build",
  )
  if (agreed !== "Build") return
  const terminal = vscode.window.createTerminal({
    name: "Build Codewright",
    shellPath: "cargo",
    shellArgs: args,
    cwd: folder,
  })
  terminal.show()
}
