#!/usr/bin/env node
// Starts the program of the package for this system, passes on signals, and ends with its exit code.
'use strict';
const { spawn } = require('child_process');
const os = require('os');

function isMusl() {
  if (process.platform !== 'linux') return false;
  const header = process.report && process.report.getReport().header;
  return !(header && header.glibcVersionRuntime);
}

function program() {
  const system = `${process.platform}-${process.arch}`;
  const names = isMusl() ? [`${system}-musl`, system] : [system, `${system}-musl`];
  const end = process.platform === 'win32' ? '.exe' : '';
  for (const name of names) {
    try {
      return require.resolve(`@codewright/${name}/bin/codewright${end}`);
    } catch {
      // The package is for another system, or optional packages were left out.
    }
  }
  console.error(
    `error: the program for ${system} is not installed\n` +
      'install again without --omit=optional or --no-optional; npm then adds the package for this system',
  );
  process.exit(1);
}

const path = program();
if (process.argv[2] === '--print-path') {
  console.log(path);
  process.exit(0);
}
const child = spawn(path, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
  // The terminal sends SIGINT to the program as well, which decides what it means.
  process.on(signal, () => {
    if (signal !== 'SIGINT') child.kill(signal);
  });
}
child.on('error', (error) => {
  console.error(`error: cannot start ${path}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  process.exit(signal ? 128 + (os.constants.signals[signal] || 0) : code);
});
