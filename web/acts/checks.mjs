// What acts compare.

export function equal(what, found, wanted) {
  if (JSON.stringify(found) !== JSON.stringify(wanted))
    throw new Error(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}

export function ok(what, value) {
  if (!value) throw new Error(what);
}
